// The card that explains the last decision.

import { element, fillRows, find, write } from "../elements.js";
import { isNumber, nameOf, whole } from "../format.js";

const ROWS_MOST = 10;
const COLUMNS = ["mean", "bonus", "total", "uncertainty"];

export function drawWhy({ state: { last }, number }) {
  const scores = scoresOf(last);
  const chosen = scores.find((score) => score.chosen);
  const shown = scores.slice(0, ROWS_MOST);
  if (chosen && !shown.includes(chosen)) shown.push(chosen);
  fillRows(find("#why-table tbody"), shown, makeRow, (row, score) => {
    row.dataset.arm = score.arm;
    row.classList.toggle("chosen", score.chosen);
    write(find("span", row), nameOf(score.arm));
    find(".tag", row).hidden = !score.chosen;
    for (const cell of row.querySelectorAll("td")) {
      const value = score[cell.dataset.score] ?? null;
      write(cell, number(value), value);
    }
  });
  find("#why-table").hidden = !scores.length;
  write(find("#why-summary"), last ? sentence(last, chosen, scores) : "No decision yet.");
  write(find("#why-note"), noteOn(scores, shown));
}

/** The scores of a decision, the highest total first. */
function scoresOf(last) {
  const total = ({ mean, bonus }) => (isNumber(mean) && isNumber(bonus) ? mean + bonus : null);
  const order = (score) => score.total ?? score.mean ?? -Infinity;
  return (last?.scores ?? [])
    .map((score) => ({ ...score, total: total(score), chosen: score.arm === last.arm }))
    .sort((a, b) => order(b) - order(a) || b.chosen - a.chosen);
}

function makeRow() {
  const tag = element("strong", { class: "tag" }, "chosen");
  return element("tr", {},
    element("th", { scope: "row" }, element("span"), " ", tag),
    ...COLUMNS.map((name) => element("td", { class: "number", "data-score": name })));
}

function sentence({ decision, round, arm }, chosen, scores) {
  const place = `Decision ${whole.format(decision)}, round ${whole.format(round)}`;
  const start = `${place}: ${nameOf(arm)}.`;
  if (!chosen || chosen.total === null) return start;
  const leads = (name) => scores.every((score) => !(score[name] > chosen[name]));
  if (!leads("total")) return `${start} Others have a higher total: the policy has another rule.`;
  const because = leads("mean") ? " and the highest mean" : ", thanks to its bonus";
  return `${start} It has the highest total${because}.`;
}

function noteOn(scores, shown) {
  const notes = scores.length ? ["Total = mean + bonus."] : [];
  if (scores.some(({ bonus }) => !isNumber(bonus))) {
    notes.push("A dash: the policy gives no bonus, or an unlimited one to an untried arm.");
  }
  if (scores.length > shown.length) {
    notes.push(`${shown.length} of ${whole.format(scores.length)} arms are shown.`);
  }
  return notes.join(" ");
}
