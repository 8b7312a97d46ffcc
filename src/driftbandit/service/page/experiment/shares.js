// The card of the shares played.

import { showSwatch, slotClass } from "../charts/marks.js";
import { element, fillRows, find, write } from "../elements.js";
import { count, isNumber, nameOf, percent, shorten, whole } from "../format.js";

const ROWS_MOST = 12, FEW_MORE = 4; // a few more are shown rather than counted

export function drawShares(record, drawn) {
  const { byPlays, state } = record;
  const all = byPlays.length <= ROWS_MOST + FEW_MORE;
  const shown = byPlays.slice(0, all ? byPlays.length : ROWS_MOST);
  const most = Math.max(...shown.map(({ share }) => share), 1e-9);
  fillRows(find("#shares-table tbody"), shown, makeRow, (row, arm) => {
    const [head, share, plays, reward, believed] = row.cells;
    const slot = drawn.slot(arm.arm);
    row.dataset.arm = arm.arm;
    showSwatch(head, slot);
    write(head.lastChild, nameOf(arm.arm));
    share.firstChild.className = `bar ${slotClass(slot)}`;
    share.firstChild.style.width = `${(60 * arm.share) / most}%`;
    write(share.lastChild, percent(arm.share), arm.share);
    write(plays, whole.format(arm.plays), arm.plays);
    write(reward, record.number(arm.mean_reward), arm.mean_reward);
    const belief = { mean: arm.mean, spread: 2 * (arm.uncertainty ?? 0) };
    write(believed, isNumber(arm.mean) ? record.belief(belief) : "–", arm.mean);
  });
  write(find("#shares-note"), noteOn(byPlays.slice(shown.length), state.retired));
}

function makeRow() {
  return element("tr", {},
    element("th", { scope: "row" }, element("span")),
    element("td", { class: "share" }, element("span"), element("span", { class: "number" })),
    ...[0, 1, 2].map(() => element("td", { class: "number" })));
}

function noteOn(others, retired) {
  const share = percent(others.reduce((sum, one) => sum + one.share, 0));
  const notes = [];
  if (others.length) notes.push(`${count(others.length, "other arm")}: ${share} of decisions.`);
  if (retired.length) notes.push(`Retired: ${shorten(retired.join(", "), 200)}.`);
  return notes.join(" ");
}
