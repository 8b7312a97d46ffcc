// All arms in one chart, with their names at the ends of the lines.

import { addClip, canvas, drawAxes } from "./canvas.js";
import { leftOf, linear, ticksOf } from "./scales.js";
import { drawChanges, drawMark, drawNames, drawSeries } from "./series.js";

const TITLE = "believed reward", CLIP = "belief-clip";

/** Draw a picture (see experiment/belief.js); return its one plot. */
export function drawTogether({ svg, width, series, timeline, range, changes, highlighted, empty }) {
  const [bottom, top] = range;
  const yTicks = ticksOf(bottom, top, 5);
  const labeled = width >= 640;
  const longest = Math.max(...series.map(({ arm }) => String(arm).length), 0);
  const right = labeled ? Math.min(28 + 7.5 * longest, 190) : 12;
  const chart = canvas(svg, width < 560 ? 260 : 340, { left: leftOf(yTicks), right });
  const x = linear(timeline.low, timeline.high, chart.left, chart.right);
  const y = linear(bottom, top, chart.bottom, chart.top);
  const plot = { ...chart, x, y };
  drawAxes(plot, timeline.ticks(chart.right - chart.left), yTicks, timeline.title, TITLE);
  drawChanges(plot, changes, 7.5 * TITLE.length);
  addClip(plot, CLIP);
  svg.classList.toggle("crowded", series.length > 3);
  const isOne = series.some(({ arm }) => arm === highlighted);
  const toneOf = (arm) => (arm === highlighted ? "strong" : isOne ? "faded" : "");
  for (const one of series) drawSeries(plot, one, CLIP, { tone: toneOf(one.arm) });
  for (const { slot, points } of series) drawMark(plot, slot, points.at(-1));
  if (labeled) drawNames(plot, series);
  if (series.length === 0) {
    const place = { x: (chart.left + chart.right) / 2, y: (chart.top + chart.bottom) / 2 };
    chart.add("text", { class: "empty", "text-anchor": "middle", ...place }, empty);
  }
  return [plot];
}
