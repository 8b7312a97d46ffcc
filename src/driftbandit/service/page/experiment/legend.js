// The legend: buttons that draw arms, and the search for one among many.

import { showSwatch } from "../charts/marks.js";
import { element, find, write } from "../elements.js";
import { count, whole } from "../format.js";
import { DRAWN_FIRST } from "./drawn.js";

const LEGEND_MOST = 24, FOUND_MOST = 60;

export class Legend {
  #found = []; // the arms whose buttons the search shows
  #search = ""; // what they were found with

  constructor(record, drawn, redraw) {
    [this.record, this.drawn, this.redraw] = [record, drawn, redraw];
    this.shown = new ArmButtons(find("#legend"), drawn, redraw);
    this.others = new ArmButtons(find("#found"), drawn, redraw);
    const on = (selector, type, react) => find(selector).addEventListener(type, react);
    on("#find", "input", () => redraw());
    on("#more", "toggle", () => redraw());
    on("#most-played", "click", () => {
      if (record.state) drawn.drawMostPlayed(record);
      redraw();
    });
    on("#none", "click", () => {
      drawn.drawNone();
      redraw();
    });
  }

  draw() {
    const all = this.record.state.arms.map(({ arm }) => arm);
    const many = all.length > LEGEND_MOST;
    this.shown.show(many ? all.filter(this.drawn.has) : all);
    write(find("#most-played"), all.length > DRAWN_FIRST ? "Draw the most played" : "Draw all");
    find("#more").hidden = !many;
    if (many && find("#more").open) this.#drawFound(all.length);
  }

  #drawFound(total) {
    const wanted = find("#find").value.toLowerCase();
    const found = this.record.byPlays.map(({ arm }) => arm)
      .filter((arm) => String(arm).toLowerCase().includes(wanted));
    // While a button has the focus, the buttons keep their order.
    const search = `${wanted}/${found.length}`;
    const isUsed = find("#found").contains(document.activeElement);
    if (!isUsed || this.#search !== search) this.#found = found.slice(0, FOUND_MOST);
    this.#search = search;
    this.others.show(this.#found.filter((arm) => this.record.arms.has(arm)));
    const shown = `${count(found.length, "arm")} of ${whole.format(total)}.`;
    const rest = found.length > FOUND_MOST ? ` The ${FOUND_MOST} most played are shown.` : "";
    write(find("#found-note"), shown + rest);
  }
}

/** A box of buttons; those that stay are not moved, so they keep the focus. */
class ArmButtons {
  #buttons = new Map();

  constructor(box, drawn, redraw) {
    [this.box, this.drawn, this.redraw] = [box, drawn, redraw];
  }

  show(arms) {
    const wanted = new Set(arms);
    for (const [arm, button] of this.#buttons) {
      if (wanted.has(arm)) continue;
      button.remove();
      this.#buttons.delete(arm);
    }
    arms.forEach((arm, place) => {
      if (!this.#buttons.has(arm)) this.#buttons.set(arm, this.#make(arm));
      const button = this.#buttons.get(arm), there = this.box.children[place];
      if (there !== button) this.box.insertBefore(button, there ?? null);
      button.setAttribute("aria-pressed", this.drawn.has(arm));
      showSwatch(button, this.drawn.slot(arm));
    });
  }

  #make(arm) {
    const button = element("button", { type: "button", class: "choice arm", "data-arm": arm },
      element("span", { title: arm }, String(arm)));
    const on = (type, react) => button.addEventListener(type, react);
    const highlight = (value) => {
      this.drawn.highlighted = value;
      this.redraw("charts");
    };
    on("click", () => {
      write(find("#drawn-note"), this.drawn.toggle(arm));
      this.redraw();
    });
    on("pointerenter", () => highlight(arm));
    on("focus", () => button.matches(":focus-visible") && highlight(arm));
    on("pointerleave", () => highlight(null));
    on("blur", () => highlight(null));
    return button;
  }
}
