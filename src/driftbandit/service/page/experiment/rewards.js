// The chart of the rewards coming in.

import { canvas, drawAxes } from "../charts/canvas.js";
import { mark, slotClass } from "../charts/marks.js";
import { extent, leftOf, linear, ticksOf, widened } from "../charts/scales.js";
import { find, write } from "../elements.js";
import { count } from "../format.js";

/** Draw rewards on a timeline; below one chart for all arms, with the same edges as its plot. */
export function drawRewards(record, dots, timeline, drawn, above) {
  const bySlot = Map.groupBy(dots, ({ arm }) => drawn.slot(arm));
  const svg = find("#rewards-chart"), said = sentence(record, dots);
  const plot = drawFrame(svg, dots, timeline, above);
  drawDots(plot, bySlot, drawn.slot(drawn.highlighted));
  svg.setAttribute("aria-label", said);
  const others = bySlot.has(undefined) ? " Gray: arms that are not drawn." : "";
  write(find("#rewards-note"), said + others);
}

function sentence({ rewards, hasAllRewards, number }, dots) {
  if (!dots.length) return rewards.length ? "No rewards in this part." : "No rewards yet.";
  const values = dots.map(({ reward }) => reward);
  const [low, high] = extent(values).map(number);
  const mean = number(values.reduce((sum, reward) => sum + reward, 0) / dots.length);
  const isCut = dots.length === rewards.length && !hasAllRewards;
  const some = `${isCut ? "The newest " : ""}${count(dots.length, "reward")}`;
  return `${some} from ${low} to ${high}, mean ${mean}.`;
}

/** Draw the axes; return what dots are drawn on. */
function drawFrame(svg, dots, timeline, above) {
  const [bottom, top] = dots.length ? widened(...extent(dots.map(({ reward }) => reward))) : [0, 1];
  const yTicks = ticksOf(bottom, top, 4);
  const left = Math.max(leftOf(yTicks), above?.left ?? 0);
  const chart = canvas(svg, 190, { left, right: above && above.width - above.right });
  const x = linear(timeline.low, timeline.high, chart.left, chart.right);
  const y = linear(bottom, top, chart.bottom - 6, chart.top);
  const plot = { ...chart, x, y };
  drawAxes(plot, timeline.ticks(chart.right - chart.left), yTicks, timeline.title, "reward");
  return plot;
}

function drawDots({ add, x, y }, bySlot, bright) {
  const slots = [...bySlot.keys()].sort((a, b) => (a ?? -1) - (b ?? -1)); // other arms lie behind
  for (const slot of slots) {
    const size = slot === undefined ? 2 : 3;
    const marks = bySlot.get(slot).map((dot) => mark(slot, x(dot.at), y(dot.reward), size));
    const tone = bright !== undefined && bright !== slot ? "faded" : "";
    add("path", { class: `mark dots ${slotClass(slot)} ${tone}`, d: marks.join("") });
  }
}
