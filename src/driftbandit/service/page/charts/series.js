// What was believed of an arm over time, drawn as a band and a line.

import { drawing } from "../elements.js";
import { fit } from "./canvas.js";
import { CIRCLE, dashOf, mark, path, pixel, slotClass } from "./marks.js";

/** Draw a band, rewards as dots, and a line; `tone` is "faded", "strong" or "". */
export function drawSeries({ add, x, y }, { slot, points }, clip, { tone = "", rewards = [] }) {
  const kind = `series ${slotClass(slot)} ${tone}`;
  const group = add("g", { class: kind, "clip-path": `url(#${clip})` });
  const runs = runsOf(points, x);
  const bands = runs.map((run) => {
    const over = run.map(({ px, mean, spread }) => [px, y(mean + spread)]);
    const under = run.map(({ px, mean, spread }) => [px, y(mean - spread)]).reverse();
    return `M${path([...over, ...under])}Z`;
  });
  group.append(drawing("path", { class: "band", d: bands.join("") }));
  const dots = rewards.map(({ at, reward }) => mark(CIRCLE, x(at), y(reward), 1.75));
  group.append(drawing("path", { class: "mark dots", d: dots.join("") }));
  const d = runs.map((run) => `M${path(run.map(({ px, mean }) => [px, y(mean)]))}`).join("");
  group.append(drawing("path", { class: "line", d, "stroke-dasharray": dashOf(slot) }));
}

/**
 * The points in pieces between changes of the model: what was believed in between is not known,
 * so that nothing is drawn across a change. A single point becomes a short piece.
 */
function runsOf(points, x) {
  const runs = [];
  let era;
  for (const point of points) {
    if (!runs.length || point.era !== era) runs.push([]);
    era = point.era;
    runs.at(-1).push({ ...point, px: x(point.at) });
  }
  return runs.map((run) => run.length > 1 ? run
    : [-1, 1].map((side) => ({ ...run[0], px: run[0].px + side })));
}

export function drawMark({ add, x, y }, slot, { at, mean }) {
  add("path", { class: `mark ${slotClass(slot)}`, d: mark(slot, x(at), y(mean), 4) });
}

/** Names at the ends of their lines, with thin leaders where they had to move. */
export function drawNames({ add, x, y, top, bottom, width }, series) {
  const labels = series.map(({ arm, slot, points }) => {
    const { at, mean } = points.at(-1);
    return { arm, slot, x: pixel(x(at)), from: y(mean), y: y(mean) };
  });
  for (const label of spread(labels, 17, top, bottom)) {
    const d = `M${label.x + 6} ${pixel(label.from)}L${label.x + 16} ${pixel(label.y)}`;
    add("path", { class: `leader ${slotClass(label.slot)}`, d });
    fit(add("text", { x: label.x + 20, y: label.y + 4 }, String(label.arm)), width - label.x - 20);
  }
}

/** Move labels apart until none overlap, as little as the order allows. */
function spread(labels, gap, low, high) {
  labels.sort((a, b) => a.y - b.y);
  let least = low;
  for (const label of labels) least = (label.y = Math.max(label.y, least)) + gap;
  let most = high;
  for (const label of labels.toReversed()) most = (label.y = Math.min(label.y, most)) - gap;
  return labels;
}

/** Thin lines where the model changed; with words where there is room, from `free` pixels on. */
export function drawChanges({ add, x, left, right, top, bottom }, changes, free = Infinity) {
  for (const { at, text } of changes) {
    const place = x(at), half = 3.7 * text.length;
    add("line", { class: "change", x1: place, x2: place, y1: top - 4, y2: bottom });
    const center = Math.min(Math.max(place, left + half), right - half);
    if (center - half < free) continue;
    add("text", { class: "tick", x: center, y: top - 11, "text-anchor": "middle" }, text);
    free = center + half + 8;
  }
}
