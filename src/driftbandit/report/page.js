"use strict";

// A click on a column's heading sorts by it, ascending; the next click, descending.
// The buttons are made here, so that a reader without scripts meets none that do nothing.
for (const table of document.querySelectorAll("table")) {
  for (const header of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.append(...header.childNodes);
    button.addEventListener("click", () => sortBy(table, header));
    header.append(button);
  }
}

function sortBy(table, header) {
  const descending = header.getAttribute("aria-sort") === "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", descending ? "descending" : "ascending");

  const body = table.tBodies[0];
  const rows = [...body.rows];
  const last = descending ? -1 : rows.length; // cells without a value come last either way
  const rank = (row) => Number(row.cells[header.cellIndex].dataset.rank ?? last);
  rows.sort((a, b) => (descending ? rank(b) - rank(a) : rank(a) - rank(b)));
  body.append(...rows);
}

// The contents stand open beside the text, and folded above it where there is no room beside.
const contents = document.querySelector("nav details");
const wide = matchMedia("(min-width: 64rem)");
const fold = () => { contents.open = wide.matches; };
wide.addEventListener("change", fold);
fold();

// Figures that are wider than the screen say so.
const hint = () => {
  for (const figure of document.querySelectorAll(".picture")) {
    const box = figure.querySelector(".scroll");
    figure.querySelector(".hint").hidden = box.scrollWidth <= box.clientWidth + 1;
  }
};
addEventListener("load", hint);
addEventListener("resize", hint);
