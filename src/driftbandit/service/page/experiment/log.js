// The card of the newest events.

import { element, find } from "../elements.js";
import { count, fixed, nameOf, when } from "../format.js";
import { EVENTS_MOST } from "./record.js";

const LINES_MOST = 12;
const FREQUENT = ["decided", "rewarded", "refit_continues"];

export class Log {
  #onlyChanges = false;
  #shown = null; // what the lines were made of

  constructor(record, redraw) {
    this.record = record;
    const button = find("#only-changes");
    button.addEventListener("click", () => {
      this.#onlyChanges = !this.#onlyChanges;
      button.setAttribute("aria-pressed", this.#onlyChanges);
      redraw();
    });
  }

  draw() {
    const { events, state, number } = this.record;
    const kept = this.#onlyChanges ? events.filter(({ kind }) => !FREQUENT.includes(kind)) : events;
    const lines = kept.slice(-LINES_MOST).reverse();
    const key = `${this.#onlyChanges} ${lines[0]?.number} ${lines.length}`;
    if (this.#shown === key) return;
    this.#shown = key;
    const nothing = element("li", {}, `Nothing among the newest ${EVENTS_MOST} events.`);
    const made = lines.map((event) => makeLine(event, state.time, number));
    find("#log").replaceChildren(...(made.length ? made : [nothing]));
  }
}

function makeLine(event, now, number) {
  const datetime = new Date(1000 * event.time).toISOString();
  return element("li", { "data-number": event.number, "data-kind": event.kind },
    element("time", { datetime }, when(event.time, now)),
    element("span", {}, textOf(event, number)));
}

function textOf(event, number) {
  const { kind, decision, arm, round, reward, reason } = event;
  const why = reason ? `: ${reason}` : "";
  switch (kind) {
    case "created": return "Experiment created";
    case "decided": return `Decision ${decision} in round ${round}: ${nameOf(arm)}`;
    case "rewarded": {
      const of = arm === null ? "" : ` (${nameOf(arm)})`; // null: offered by its features
      return `Reward ${number(reward)} for decision ${decision}${of}`;
    }
    case "arm_added": return `Arm added: ${nameOf(arm)}`;
    case "arm_retired": return `Arm retired: ${nameOf(arm)}`;
    case "model_replaced": return "Model replaced";
    case "refit_started": return "Refit started";
    case "refit_continues": return "Refit continues";
    case "refitted":
      return `Model refitted: ${count(event.rewards, "reward")}, ${fixed(event.seconds, 1)} s`;
    case "refit_failed": return `Refit failed${why}`;
    case "paused": return `Paused${why}`;
    case "resumed": return "Resumed";
    default: return kind;
  }
}
