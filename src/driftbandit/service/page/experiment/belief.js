// The card of the believed rewards over time.

import { drawPanels } from "../charts/panels.js";
import { extent, middle, widened } from "../charts/scales.js";
import { drawTogether } from "../charts/together.js";
import { find, showChoices, write } from "../elements.js";
import { count } from "../format.js";
import { beliefAt } from "./history.js";
import { Reading } from "./reading.js";
import { KINDS } from "./record.js";

const CHANGED = ["refitted", "model_replaced"]; // after which everything may be believed otherwise
const LAYOUTS = [["alone", "One by one"], ["together", "Together"]];

export class Belief {
  range = null; // rounds or seconds, 0 for all; null until the reader chooses
  #layout = null; // "alone" or "together"; null until the reader chooses

  constructor(record, drawn, redraw) {
    [this.record, this.drawn, this.redraw] = [record, drawn, redraw];
    this.reading = new Reading(redraw);
  }

  get layout() {
    if (this.drawn.size < 2) return "together";
    // More than three bands on top of each other cannot be read.
    return this.#layout ?? (this.drawn.size > 3 ? "alone" : "together");
  }

  drawChoices({ ranges, length }) {
    showChoices(find("#ranges"), ranges.length > 1 ? ranges : [], length, (chosen) => {
      this.range = chosen;
      this.redraw();
    });
    showChoices(find("#layouts"), this.drawn.size > 1 ? LAYOUTS : [], this.layout, (chosen) => {
      this.#layout = chosen;
      this.redraw();
    });
  }

  /** Draw the chart; return its plot, if it is one for all arms. */
  draw(timeline, rewards) {
    const svg = find("#belief-chart");
    const picture = this.#picture(svg, timeline, rewards);
    const { series, alone, samples } = picture;
    const plots = (alone ? drawPanels : drawTogether)(picture);
    this.reading.draw(picture, plots);
    const changed = picture.changes.length ? " Dotted lines: the model changed." : "";
    write(find("#chart-note"), (alone ? "Dots: rewards." : "") + changed);
    const now = series.map(({ arm, points }) => `${arm} ${this.record.belief(points.at(-1))}`);
    const what = `Believed reward of ${count(series.length, "arm")}, ${timeline.span}.`;
    svg.setAttribute("aria-label", `${what} Now: ${now.join(", ") || "none drawn"}.`);
    svg.dataset.samples = samples.length;
    return alone ? undefined : plots[0];
  }

  /** All that the charts draw. */
  #picture(svg, timeline, rewards) {
    const { record, drawn, layout } = this;
    const width = svg.parentElement.clientWidth;
    const samples = timeline.samples(width);
    const series = seriesOf(samples, drawn, timeline, record.state.models);
    const alone = layout === "alone" && series.length > 1;
    const read = this.reading.sampleOf(samples, timeline);
    const valueOf = ({ arm, points }) => {
      const belief = read ? beliefAt(read, arm) : points.at(-1);
      return belief ? record.belief(belief) : "–";
    };
    return {
      svg, width, timeline, samples, series, layout, alone, read, valueOf,
      range: rangeOf(series, alone ? rewards : []), // one chart for all has no room for dots
      rewards: Map.groupBy(rewards, ({ arm }) => arm),
      changes: changesOf(record.state.models, timeline),
      highlighted: drawn.highlighted,
      text: record.belief,
      empty: drawn.size ? "The policy has no model of these arms." : "Choose an arm to draw it.",
    };
  }
}

/** What the samples say of the drawn arms; `era` counts the models until then. */
function seriesOf(samples, drawn, timeline, models) {
  const changes = models.filter(({ kind }) => CHANGED.includes(kind));
  const eraOf = ({ time }) => changes.filter((change) => change.time <= time).length;
  const eras = new Map(samples.map((sample) => [sample, eraOf(sample)]));
  const pointOf = (sample, arm) => {
    const belief = beliefAt(sample, arm);
    return belief && { at: timeline.at(sample), era: eras.get(sample), ...belief };
  };
  return drawn.sorted
    .map(([arm, slot]) => ({
      arm, slot, points: samples.map((sample) => pointOf(sample, arm)).filter(Boolean),
    }))
    .filter(({ points }) => points.length);
}

const changesOf = (models, timeline) =>
  timeline.among(models.filter(({ kind }) => kind !== "created"))
    .filter(({ at }) => at > timeline.low)
    .map(({ at, kind }) => ({ at, text: KINDS[kind] ?? kind }));

/** The range of an axis. The first bands are wide, so a few may leave the chart; means may not. */
function rangeOf(series, rewards) {
  const points = series.flatMap((one) => one.points);
  const newest = series.map((one) => one.points.at(-1));
  if (!points.length) return [0, 1];
  return widened(...extent([
    ...points.map(({ mean }) => mean),
    ...newest.flatMap(({ mean, spread }) => [mean - spread, mean + spread]),
    ...middle(points.map(({ mean, spread }) => mean - spread), 0.05),
    ...middle(points.map(({ mean, spread }) => mean + spread), 0.05),
    ...(rewards.length ? middle(rewards.map(({ reward }) => reward), 0.02) : []),
  ]));
}
