// What the page knows of an experiment: its state, its history, its newest events and rewards.

import { beliefText, decimals, fixed } from "../format.js";
import { History, NUMBERS_MOST } from "./history.js";

export const EVENTS_MOST = 500;
const REWARDS_MOST = 3_000;

/** What changes of the model are called. */
export const KINDS = {
  created: "start",
  model_replaced: "new model",
  refitted: "refit",
  arm_added: "arm added",
  arm_retired: "arm retired",
};

export class Record {
  state = null;
  history = new History();
  events = []; // oldest first
  rewards = []; // the events of rewards, of which more are kept
  #oldest = Infinity; // the number of the oldest event seen

  take(state) {
    if (this.state && this.state.created !== state.created) this.#forget();
    this.state = state;
    this.byClock = typeof state.rounds_are === "object";
    this.digits = decimals(state.reward_std || Math.abs(state.arms[0]?.mean ?? 1));
    this.arms = new Map(state.arms.map((arm) => [arm.arm, arm]));
    this.byPlays = state.arms.toSorted((a, b) => b.plays - a.plays);
    this.history.add({
      round: state.round,
      time: state.time,
      arms: state.arms.map(({ arm }) => arm),
      mean: state.arms.map(({ mean }) => mean),
      uncertainty: state.arms.map(({ uncertainty }) => uncertainty),
    });
  }

  /** The server came back with another experiment of this name. */
  #forget() {
    this.history = new History();
    [this.events, this.rewards, this.#oldest] = [[], [], Infinity];
  }

  learn(events) {
    const rewards = events.filter(({ kind }) => kind === "rewarded");
    this.events = merged(this.events, events, EVENTS_MOST);
    this.rewards = merged(this.rewards, rewards, REWARDS_MOST);
    this.#oldest = Math.min(this.#oldest, events[0]?.number ?? Infinity);
  }

  /** Whether `rewards` are all there were, not only the newest. */
  get hasAllRewards() {
    return this.#oldest === 1 && this.rewards.length < REWARDS_MOST;
  }

  get lastNumber() {
    return this.events.at(-1)?.number ?? 0;
  }

  /** How many documents to load, each of which may name all arms: fewer if there are many. */
  fitting(least, most) {
    const fitting = Math.round(NUMBERS_MOST / 2 / (this.state?.arms.length || 1));
    return Math.min(Math.max(fitting, least), most);
  }

  number = (value) => fixed(value, this.digits);
  belief = (belief) => beliefText(belief, this.digits);
}

/** Two lists of events as one, each event once, in order, and only the newest. */
function merged(known, news, most) {
  const byNumber = new Map([...known, ...news].map((event) => [event.number, event]));
  return [...byNumber.values()].sort((a, b) => a.number - b.number).slice(-most);
}
