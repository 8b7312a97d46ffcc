// Charts of calibration: a histogram of surprises, and their mean square on its normal range.

import { count, fixed, percent } from "../format.js";
import { canvas, drawAxes } from "./canvas.js";
import { CIRCLE, DIAMOND, mark, path, pixel } from "./marks.js";
import { leftOf, linear, ticksOf } from "./scales.js";

const END = 4, STEP = 0.5; // standard deviations

/** The share of surprises in each bin; the outer bins hold all that lies beyond. */
function binsOf(surprises) {
  const bins = new Array((2 * END) / STEP).fill(0);
  for (const value of surprises) {
    const place = Math.floor((value + END) / STEP);
    bins[Math.min(Math.max(place, 0), bins.length - 1)] += 1 / surprises.length;
  }
  return bins;
}

/** The share that a bin at u has if surprises are standard normal. */
const normal = (u) => (STEP * Math.exp((-u * u) / 2)) / Math.sqrt(2 * Math.PI);

export function drawSurprises(svg, surprises) {
  const bins = binsOf(surprises);
  const top = Math.max(...bins, normal(0)) * 1.08;
  const yTicks = ticksOf(0, 100 * top, 4)
    .map(({ value, text }) => ({ value: value / 100, text: `${text}%` }));
  const chart = canvas(svg, 220, { left: leftOf(yTicks) });
  const x = linear(-END, END, chart.left, chart.right);
  const y = linear(0, top, chart.bottom, chart.top);
  const unit = "surprise (standard deviations)";
  drawAxes({ ...chart, x, y }, ticksOf(-END, END, 4), yTicks, unit, "share of rewards");
  const bars = bins.map((share, place) => {
    const from = x(-END + STEP * place) + 1, to = x(-END + STEP * (place + 1)) - 1;
    return `M${pixel(from)} ${chart.bottom}V${pixel(y(share))}H${pixel(to)}V${chart.bottom}Z`;
  });
  chart.add("path", { class: "histogram", d: bars.join("") });
  const curve = Array.from({ length: 81 }, (_, place) => -END + place / 10);
  chart.add("path", { class: "normal", d: `M${path(curve.map((u) => [x(u), y(normal(u))]))}` });
  const corner = { x: chart.right, y: chart.top + 4, "text-anchor": "end" };
  chart.add("text", corner, "curve: standard normal");
  const inside = surprises.filter((value) => Math.abs(value) <= 2).length;
  const found = `${percent(inside / surprises.length)} lie within ± 2`;
  const what = `Histogram of ${count(surprises.length, "surprise")}.`;
  svg.setAttribute("aria-label", `${what} ${found}; 95% would if the model holds.`);
}

export function drawSquare(svg, { mean_square: value, low, high, rewards }) {
  const chart = canvas(svg, 84, { left: 12, right: 24, top: 34, bottom: 28 });
  const { add, left, right, top, bottom, width } = chart;
  const end = Math.max(1.25 * high, 1.1 * value, 1.25);
  const x = linear(0, end, left, right);
  const range = { x: x(low), width: Math.max(x(high) - x(low), 1) };
  add("rect", { class: "normal-range", ...range, y: top, height: bottom - top });
  add("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom });
  for (const { value: tick, text } of ticksOf(0, end, 4)) {
    add("text", { class: "tick", x: x(tick), y: bottom + 18, "text-anchor": "middle" }, text);
  }
  const isNormal = value >= low && value <= high;
  const d = mark(isNormal ? CIRCLE : DIAMOND, x(value), (top + bottom) / 2, 6);
  add("path", { class: `square ${isNormal ? "good" : "bad"}`, d });
  const text = `${fixed(value, 2)}, normal ${fixed(low, 2)} to ${fixed(high, 2)}`;
  const label = add("text", { y: top - 10, "text-anchor": "middle" }, text);
  const half = label.getComputedTextLength() / 2;
  label.setAttribute("x", Math.min(Math.max(x(value), half), width - half));
  Object.assign(svg.dataset, { value, low, high });
  const what = `Mean square of the surprises of ${count(rewards, "reward")}`;
  svg.setAttribute("aria-label", `${what}: ${text}.`);
}
