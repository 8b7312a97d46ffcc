// The chart of the rewards coming in.

import { canvas, drawAxes } from "../charts/canvas.js";
import { mark, slotClass } from "../charts/marks.js";
import { extent, leftOf, linear, ticksOf, widened } from "../charts/scales.js";
import { find, write } from "../elements.js";
import { count } from "../format.js";

export function drawRewards(record, drawn, timeline) {
  const dots = timeline.among(record.rewards);
  const bySlot = Map.groupBy(dots, ({ arm }) => drawn.slot(arm));
  const svg = find("#rewards-chart"), said = sentence(dots, record.number);
  drawDots(svg, dots, bySlot, drawn.slot(drawn.highlighted), timeline);
  svg.setAttribute("aria-label", said);
  const others = bySlot.has(undefined) ? " Gray: arms that are not drawn." : "";
  write(find("#rewards-note"), said + others);
}

function sentence(dots, text) {
  if (!dots.length) return "No rewards yet.";
  const [low, high] = extent(dots.map(({ reward }) => reward));
  const mean = dots.reduce((sum, { reward }) => sum + reward, 0) / dots.length;
  return `${count(dots.length, "reward")} from ${text(low)} to ${text(high)}, mean ${text(mean)}.`;
}

function drawDots(svg, dots, bySlot, bright, timeline) {
  const [bottom, top] = dots.length ? widened(...extent(dots.map(({ reward }) => reward))) : [0, 1];
  const yTicks = ticksOf(bottom, top, 4);
  const chart = canvas(svg, 190, { left: leftOf(yTicks) });
  const x = linear(timeline.low, timeline.high, chart.left, chart.right);
  const y = linear(bottom, top, chart.bottom - 6, chart.top);
  const xTicks = timeline.ticks(chart.right - chart.left);
  drawAxes({ ...chart, x, y }, xTicks, yTicks, timeline.title, "reward");
  const slots = [...bySlot.keys()].sort((a, b) => (a ?? -1) - (b ?? -1)); // other arms lie behind
  for (const slot of slots) {
    const size = slot === undefined ? 2 : 3;
    const marks = bySlot.get(slot).map((dot) => mark(slot, x(dot.at), y(dot.reward), size));
    const tone = bright !== undefined && bright !== slot ? "faded" : "";
    chart.add("path", { class: `mark dots ${slotClass(slot)} ${tone}`, d: marks.join("") });
  }
}
