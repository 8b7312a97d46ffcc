// Reading values off the chart of believed rewards, by pointer or by keyboard.

import { swatch } from "../charts/marks.js";
import { drawMark } from "../charts/series.js";
import { element, find } from "../elements.js";
import { beliefAt } from "./history.js";

export class Reading {
  #at = null; // where on the axis of time values are read; null: nowhere
  #panel = 0; // the plot beside whose cursor they are written
  #picture = null; // as it was drawn last, and its plots
  #plots = [];

  constructor(redraw) {
    this.redraw = redraw;
    const on = (type, react) => find("#belief-plot").addEventListener(type, react);
    for (const type of ["pointermove", "pointerdown"]) on(type, (event) => this.#point(event));
    for (const type of ["pointerleave", "blur"]) on(type, () => this.#read(null));
    on("keydown", (event) => this.#press(event));
  }

  /** The sample that is read; undefined: none. */
  sampleOf(samples, timeline) {
    return samples.find((sample) => timeline.at(sample) === this.#at);
  }

  #read(at) {
    if (this.#at === at) return;
    this.#at = at;
    this.redraw("charts");
  }

  #point({ clientX, clientY }) {
    if (!this.#picture) return;
    const { svg, samples, timeline } = this.#picture;
    const box = svg.getBoundingClientRect();
    const px = clientX - box.left, py = clientY - box.top;
    const plot = nearest(this.#plots, ({ left, right, top, bottom }) =>
      Math.max(left - px, px - right, 0) + Math.max(top - py, py - bottom, 0));
    this.#panel = this.#plots.indexOf(plot);
    const sample = nearest(samples, (one) => Math.abs(plot.x(timeline.at(one)) - px));
    this.#read(timeline.at(sample));
  }

  #press(event) {
    if (!this.#picture) return;
    const { samples, timeline } = this.#picture;
    const last = samples.length - 1, found = samples.indexOf(this.sampleOf(samples, timeline));
    const now = found < 0 ? last : found;
    const places = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last };
    if (event.key === "Escape") this.#read(null);
    if (!(event.key in places)) return;
    event.preventDefault();
    this.#read(timeline.at(samples[Math.min(Math.max(places[event.key], 0), last)]));
  }

  /** Draw cursors into the plots of a picture, and write the values beside one. */
  draw(picture, plots) {
    [this.#picture, this.#plots] = [picture, plots];
    const { read, series, timeline, width } = picture;
    const box = find("#reading");
    box.hidden = !read;
    if (!read) return;
    const rows = series.map(({ arm, slot }) => ({ arm, slot, belief: beliefAt(read, arm) }))
      .filter(({ belief }) => belief).sort((a, b) => b.belief.mean - a.belief.mean);
    this.#drawCursors(rows, series);
    showValues(box, timeline.text(this.#at), rows, picture.text);
    box.dataset.layout = picture.layout; // panels show the values themselves
    const plot = plots[this.#panel] ?? plots[0];
    const x = plot.x(this.#at), wide = box.offsetWidth;
    const place = x > (plot.left + plot.right) / 2 ? x - wide - 10 : x + 10;
    box.style.left = `${Math.max(0, Math.min(place, width - wide))}px`;
    box.style.top = `${plot.top}px`;
  }

  #drawCursors(rows, series) {
    this.#plots.forEach((plot, place) => {
      const x = plot.x(this.#at);
      if (x < plot.left) return;
      plot.add("line", { class: "cursor", x1: x, x2: x, y1: plot.top - 4, y2: plot.bottom });
      for (const { arm, slot, belief } of rows) {
        const isHere = this.#plots.length === 1 || series[place].arm === arm;
        if (isHere) drawMark(plot, slot, { at: this.#at, ...belief });
      }
    });
  }
}

/** Write values only if they changed: the box is read aloud. */
function showValues(box, title, rows, text) {
  const lines = rows.map(({ arm, slot, belief }) => element("li", {},
    swatch(slot),
    element("span", { class: "name" }, String(arm)),
    element("span", { class: "number" }, text(belief))));
  const made = [element("strong", {}, title), element("ul", {}, ...lines)];
  if (box.textContent !== made.map((one) => one.textContent).join("")) box.replaceChildren(...made);
}

/** The item at the smallest distance. */
function nearest(items, distance) {
  return items.reduce((best, one) => (distance(one) < distance(best) ? one : best));
}
