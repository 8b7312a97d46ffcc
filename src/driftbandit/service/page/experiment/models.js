// The card of models and refits.

import { element, fillRows, find, write } from "../elements.js";
import { count, decimals, fixed, isNumber, nameOf, when, whole } from "../format.js";
import { KINDS } from "./record.js";

export function drawModels({ state: { models, refit, time } }) {
  fillRows(find("#models-table tbody"), models.toReversed(), makeRow, (row, model) => {
    const [head, since, rewards, states, noise] = row.cells;
    row.dataset.model = model.number;
    const kind = KINDS[model.kind] ?? model.kind;
    write(head.firstChild, model.arm === undefined ? kind : `${kind}: ${nameOf(model.arm)}`);
    write(head.lastChild, `version ${whole.format(model.number)}`, model.number);
    write(since, when(model.time, time), model.time);
    const known = isNumber(model.rewards);
    write(rewards, known ? whole.format(model.rewards) : "–", known ? model.rewards : null);
    write(states, whole.format(model.n_states), model.n_states);
    write(noise, fixed(model.reward_std, decimals(model.reward_std)), model.reward_std);
  });
  write(find("#refit"), sentence(refit));
  find("#refit").classList.toggle("bad", Boolean(refit?.failure));
}

function makeRow() {
  return element("tr", {},
    element("th", { scope: "row" }, element("span"), element("small")),
    element("td"),
    ...[0, 1, 2].map(() => element("td", { class: "number" })));
}

function sentence(refit) {
  if (!refit) return "This experiment does not refit its model.";
  const { in_progress: running, next_after: next, failure } = refit;
  let said = next === null ? "No refit is due." : `Next refit: after ${count(next, "more reward")}.`;
  if (running) said = "A refit is running.";
  return failure ? `${said} The last refit failed: ${failure}` : said;
}
