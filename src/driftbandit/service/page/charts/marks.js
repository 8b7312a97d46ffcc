// Slots: how the lines and marks of different arms look. A slot is a color, a dash and a mark.

import { drawing } from "../elements.js";

const COLORS = 8, DASHES = ["", "6 4", "2 3"];
export const SLOTS = COLORS * DASHES.length;

export const pixel = (value) => Math.round(10 * value) / 10;
export const path = (points) => points.map(([x, y]) => `${pixel(x)} ${pixel(y)}`).join("L");

/** Marks differ in form as well as in color: circle, square, diamond, triangle. */
const MARKS = [
  (x, y, r) => `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`,
  (x, y, r) => `M${x - r} ${y - r}h${2 * r}v${2 * r}h${-2 * r}z`,
  (x, y, r) => `M${x - 1.3 * r} ${y}L${x} ${y - 1.3 * r}L${x + 1.3 * r} ${y}L${x} ${y + 1.3 * r}z`,
  (x, y, r) => `M${x} ${y - 1.3 * r}l${1.3 * r} ${2.3 * r}h${-2.6 * r}z`,
];
export const CIRCLE = 0, DIAMOND = 2;

/** The path of a slot's mark; the slot of an arm that is not drawn is undefined. */
export const mark = (slot = CIRCLE, x, y, r) => MARKS[slot % MARKS.length](pixel(x), pixel(y), r);
export const slotClass = (slot) => (slot === undefined ? "other" : `slot-${slot % COLORS}`);
export const dashOf = (slot) => DASHES[Math.floor(slot / COLORS) % DASHES.length];

/** A swatch: the line, dash and mark of a slot. */
export function swatch(slot) {
  const attributes = { viewBox: "0 0 24 12", "aria-hidden": "true" };
  const svg = drawing("svg", { class: `swatch ${slotClass(slot)}`, ...attributes });
  if (slot === undefined) svg.append(drawing("path", { class: "mark", d: mark(slot, 12, 6, 3) }));
  else {
    svg.append(drawing("path", { class: "line", d: "M0 6H24", "stroke-dasharray": dashOf(slot) }));
    svg.append(drawing("path", { class: "mark", d: mark(slot, 12, 6, 3.5) }));
  }
  return svg;
}

/** Put a slot's swatch first into a node, unless it is there. */
export function showSwatch(node, slot) {
  const key = String(slot ?? "none");
  if (node.dataset.slot === key) return;
  if (node.dataset.slot === undefined) node.prepend(swatch(slot));
  else node.firstChild.replaceWith(swatch(slot));
  node.dataset.slot = key;
}
