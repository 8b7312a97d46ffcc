// The axis of time: rounds, or seconds if the rounds follow the clock, and the part that is shown.

import { moment, when, whole } from "../format.js";
import { roundTicks, timeTicks } from "../charts/scales.js";

const SECONDS = [[3600, "1 hour"], [86400, "1 day"], [604800, "1 week"]];
const ROUNDS = [[100, "100 rounds"], [1000, "1,000 rounds"], [10000, "10,000 rounds"]];
const ALL = 0;

export class Timeline {
  /** Range: the length that the reader chose; null: none yet. */
  constructor(record, range) {
    this.record = record;
    this.byClock = record.byClock;
    const { samples } = record.history;
    const first = this.at(samples[0]), last = this.at(samples.at(-1));
    const lengths = this.byClock ? SECONDS : ROUNDS;
    const wanted = range ?? lengths[1][0];
    this.ranges = [...lengths.filter(([length]) => length < last - first), [ALL, "All"]];
    this.length = this.ranges.find(([length]) => length === wanted)?.[0] ?? ALL;
    this.low = this.length ? last - this.length : first;
    this.high = Math.max(last, this.low + 1);
    this.title = this.byClock ? "time" : "round";
  }

  /** Where something stands: a sample, an event, or the beginning of a model. */
  at({ time, round }) {
    return this.byClock ? time : round ?? this.record.history.roundAt(time);
  }

  /** The things of a list that are shown, each with its place. */
  among(things) {
    return things.map((one) => ({ ...one, at: this.at(one) }))
      .filter(({ at }) => at >= this.low && at <= this.high);
  }

  /** The samples that are shown and one before, no more than every second pixel. */
  samples(width) {
    const { samples } = this.record.history, last = samples.length - 1;
    const start = Math.max(samples.findIndex((sample) => this.at(sample) >= this.low) - 1, 0);
    const every = Math.ceil((last + 1 - start) / Math.max(width / 2, 100));
    return samples.filter((_, place) => place >= start && (last - place) % every === 0);
  }

  ticks(width) {
    const most = Math.max(3, Math.floor(width / 100));
    return (this.byClock ? timeTicks : roundTicks)(this.low, this.high, most);
  }

  text(at) {
    return this.byClock ? when(at, this.record.state.time) : `Round ${whole.format(at)}`;
  }

  get span() {
    const text = this.byClock ? moment : (round) => `round ${whole.format(round)}`;
    return `${text(this.low)} to ${text(this.high)}`;
  }
}
