// What every chart is drawn on: a canvas, axes, and texts that fit.

import { drawing } from "../elements.js";
import { shorten } from "../format.js";

/** Empty a chart, fit it to its box, and return what draws on it. */
export function canvas(svg, height, { left, right = 12, top = 24, bottom = 44 }) {
  const width = Math.max(svg.parentElement.clientWidth, 200);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("height", height);
  svg.replaceChildren();
  const add = (tag, attributes, text) => {
    const made = drawing(tag, attributes, text);
    svg.append(made);
    return made;
  };
  return { svg, add, width, height, left, right: width - right, top, bottom: height - bottom };
}

export function drawAxes(plot, xTicks, yTicks, xTitle, yTitle) {
  const { add, x, y, left, right, top, bottom } = plot;
  const write = (text, place, anchor) =>
    text && add("text", { class: "tick", "text-anchor": anchor, ...place }, text);
  for (const { value, text } of yTicks) {
    add("line", { class: "grid", x1: left, x2: right, y1: y(value), y2: y(value) });
    write(text, { x: left - 8, y: y(value) + 4 }, "end");
  }
  add("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom });
  for (const { value, text } of xTicks) {
    add("line", { class: "axis", x1: x(value), x2: x(value), y1: bottom, y2: bottom + 5 });
    write(text, { x: x(value), y: bottom + 19 }, "middle");
  }
  write(yTitle, { x: 0, y: top - 11 }, "start");
  write(xTitle, { x: right, y: bottom + 38 }, "end");
}

/** Let lines end at the edges of the plot. */
export function addClip({ add, left, right, top, bottom }, id) {
  const box = { x: left, y: top - 6, width: right - left, height: bottom - top + 6 };
  add("clipPath", { id }).append(drawing("rect", box));
}

/** Shorten a drawn text to a number of pixels. */
export function fit(node, room) {
  const text = node.textContent, long = node.getComputedTextLength();
  if (long <= room) return;
  node.textContent = shorten(text, Math.max(Math.floor((text.length * room) / long) - 1, 4));
  node.append(drawing("title", {}, text));
}
