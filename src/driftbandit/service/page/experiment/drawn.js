// Which arms are drawn, and how: each has a slot.

import { SLOTS } from "../charts/marks.js";

export const DRAWN_FIRST = 12; // arms drawn until the reader chooses

export class DrawnArms {
  slots = new Map(); // arm -> slot
  highlighted = null;
  #chosenByReader = false;

  get size() {
    return this.slots.size;
  }

  has = (arm) => this.slots.has(arm);

  /** The arm's slot; undefined: it is not drawn. */
  slot = (arm) => this.slots.get(arm);

  /** The arms and their slots, in the order of the slots. */
  get sorted() {
    return [...this.slots].sort(([, a], [, b]) => a - b);
  }

  /** Follow a new state: arms may be gone, and others be played most. */
  follow(record) {
    for (const arm of this.slots.keys()) if (!record.arms.has(arm)) this.slots.delete(arm);
    if (!this.#chosenByReader) this.drawMostPlayed(record);
  }

  drawMostPlayed({ state, byPlays }) {
    this.#chosenByReader = false;
    const first = (state.arms.length > DRAWN_FIRST ? byPlays : state.arms).slice(0, DRAWN_FIRST);
    const wanted = new Set(first.map(({ arm }) => arm));
    for (const arm of this.slots.keys()) if (!wanted.has(arm)) this.slots.delete(arm);
    for (const arm of wanted) this.#add(arm);
  }

  drawNone() {
    this.#chosenByReader = true;
    this.slots.clear();
  }

  /** Draw an arm, or no longer; return why that is not possible, or "". */
  toggle(arm) {
    this.#chosenByReader = true;
    if (this.slots.delete(arm)) return "";
    if (this.size === SLOTS) {
      return `${SLOTS} arms are drawn, as many as can be told apart. Turn one off first.`;
    }
    this.#add(arm);
    return "";
  }

  /** Give an arm the first free slot; it keeps its colors as long as it is drawn. */
  #add(arm) {
    if (this.has(arm)) return;
    const taken = new Set(this.slots.values());
    let slot = 0;
    while (taken.has(slot)) slot += 1;
    this.slots.set(arm, slot);
  }
}
