// What was believed over time.

import { isNumber } from "../format.js";

export const NUMBERS_MOST = 200_000; // that are kept, whatever the number of arms

export class History {
  samples = []; // {round, time, mean, uncertainty, places}, oldest first
  #arms = [];
  #places = new Map();

  /** The place of every arm; the same map as long as the arms are the same. */
  #placesOf(arms) {
    const same = arms.length === this.#arms.length && arms.every((arm, i) => arm === this.#arms[i]);
    if (!same) [this.#arms, this.#places] = [arms, new Map(arms.map((arm, i) => [arm, i]))];
    return this.#places;
  }

  add({ round, time, arms, mean, uncertainty }) {
    const last = this.samples.at(-1);
    if (last && time < last.time) return;
    const at = Math.max(round, last?.round ?? 0); // a stored sample may be a round behind or before
    this.samples.push({ round: at, time, mean, uncertainty, places: this.#placesOf(arms) });
    const most = Math.max(100, NUMBERS_MOST / (arms.length + 1));
    if (this.samples.length > most) this.#thin();
  }

  /** Drop every other sample of the older half. */
  #thin() {
    const half = this.samples.length / 2;
    this.samples = this.samples.filter((_, place) => place > half || place % 2 === 0);
  }

  /** Fill in what the server has stored; the newest sample stays the one that came live. */
  load(stored) {
    const live = this.samples, newest = live.at(-1)?.time ?? Infinity;
    this.samples = [];
    for (const sample of stored) if (sample.time < newest) this.add(sample);
    const end = this.samples.at(-1)?.time ?? -Infinity;
    this.samples.push(...live.filter((sample) => sample.time > end));
  }

  /** About which round it was. */
  roundAt(time) {
    let low = 0, high = this.samples.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.samples[middle].time < time) low = middle + 1;
      else high = middle;
    }
    return this.samples[low]?.round;
  }
}

/** What a sample says of an arm: the mean, and two uncertainties as `spread`; null: nothing. */
export function beliefAt(sample, arm) {
  const place = sample.places.get(arm);
  const mean = sample.mean[place], spread = sample.uncertainty[place];
  return isNumber(mean) ? { mean, spread: isNumber(spread) ? 2 * spread : 0 } : null;
}
