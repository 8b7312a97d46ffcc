// A panel for each arm; all have the same scales.

import { addClip, canvas, drawAxes, fit } from "./canvas.js";
import { mark, slotClass } from "./marks.js";
import { leftOf, linear, ticksOf } from "./scales.js";
import { drawChanges, drawMark, drawSeries } from "./series.js";

const HEAD = 42, HIGH = 112, GAP = 32; // pixels

/** Draw a picture (see experiment/belief.js); return the plot of each arm. */
export function drawPanels({ svg, width, series, timeline, range, changes, rewards, valueOf }) {
  svg.classList.remove("crowded");
  const most = width < 600 ? 1 : width < 1000 ? 2 : series.length > 9 ? 4 : 3;
  const rows = Math.ceil(series.length / most), columns = Math.ceil(series.length / rows);
  const [bottom, top] = range;
  const yTicks = ticksOf(bottom, top, 4);
  const chart = canvas(svg, rows * (HEAD + HIGH) + 44, { left: leftOf(yTicks) });
  const wide = (chart.right - chart.left - GAP * (columns - 1)) / columns;
  const xTicks = timeline.ticks(wide);
  const silent = (ticks) => ticks.map(({ value }) => ({ value, text: "" }));
  chart.add("text", { class: "tick", x: 0, y: chart.height - 6 }, "↑ believed reward");
  return series.map((one, place) => {
    const column = place % columns, row = Math.floor(place / columns);
    const left = chart.left + column * (wide + GAP), above = row * (HEAD + HIGH) + HEAD;
    const plot = { ...chart, left, right: left + wide, top: above, bottom: above + HIGH };
    plot.x = linear(timeline.low, timeline.high, plot.left, plot.right);
    plot.y = linear(bottom, top, plot.bottom, plot.top);
    const times = place + columns < series.length ? silent(xTicks) : xTicks;
    const title = place === series.length - 1 ? timeline.title : "";
    drawAxes(plot, times, column ? silent(yTicks) : yTicks, title);
    drawChanges(plot, changes);
    const clip = `belief-clip-${place}`;
    addClip(plot, clip);
    drawSeries(plot, one, clip, { rewards: rewards.get(one.arm) });
    drawMark(plot, one.slot, one.points.at(-1));
    drawHead(plot, one, valueOf(one));
    return plot;
  });
}

function drawHead({ add, left, right, top }, { arm, slot }, value) {
  const y = top - 14;
  add("path", { class: `mark ${slotClass(slot)}`, d: mark(slot, left + 5, y - 4.5, 4.5) });
  const end = add("text", { class: "value", x: right, y, "text-anchor": "end" }, value);
  const name = add("text", { class: "name", x: left + 16, y }, String(arm));
  fit(name, right - left - 28 - end.getComputedTextLength());
}
