// The list of experiments.

import { load } from "./api.js";
import { element, find, mount, write } from "./elements.js";
import { count, moment, whole } from "./format.js";
import { keepTrying, wait } from "./stream.js";
import { showLive, showLost, showUpdated } from "./top.js";

const PACE = 5_000; // ms between two looks at the list
const FACTS = { round: "Round", decisions: "Decisions", rewards: "Rewards" };

/** Show the list until the signal says that another view is shown. */
export async function runList(signal) {
  const list = find("#experiments", mount("#list-view"));
  document.title = "Experiments · driftbandit";
  const look = async (succeeded) => {
    while (!signal.aborted) {
      const { experiments } = await load("v1/experiments", signal);
      succeeded();
      showLive();
      showUpdated(Date.now() / 1000);
      showList(list, experiments);
      await wait(PACE, signal);
    }
  };
  await keepTrying(look, signal, showLost);
}

/** Cards that stay are not made anew, so that their links keep the focus. */
function showList(list, experiments) {
  const cards = new Map([...list.children].map((card) => [card.dataset.experiment, card]));
  experiments.toSorted((a, b) => b.created - a.created).forEach((experiment, place) => {
    const card = cards.get(experiment.id) ?? makeCard(experiment.id);
    cards.delete(experiment.id);
    fillCard(card, experiment);
    if (list.children[place] !== card) list.insertBefore(card, list.children[place] ?? null);
  });
  for (const card of cards.values()) card.remove();
  if (!experiments.length) list.append(makeInvitation());
}

function makeInvitation() {
  const code = (text) => element("code", {}, text);
  return element("li", { class: "card message", "data-experiment": "" },
    element("p", {}, "No experiments yet. ", code("POST /v1/experiments"), " makes one; ",
      code("driftbandit serve --demo"), " shows one with simulated traffic."));
}

function makeCard(id) {
  const facts = Object.entries(FACTS).map(([name, title]) =>
    element("div", {}, element("dt", {}, title), element("dd", { "data-field": name })));
  return element("li", { class: "card", "data-experiment": id },
    element("div", { class: "heading" },
      element("h2", {}, element("a", { href: `#/${encodeURIComponent(id)}` }, id)),
      element("strong", { class: "running" })),
    element("p", { class: "dim", "data-field": "about" }),
    element("dl", {}, ...facts));
}

function fillCard(card, experiment) {
  for (const name of Object.keys(FACTS)) {
    write(find(`[data-field=${name}]`, card), whole.format(experiment[name]), experiment[name]);
  }
  const arms = count(experiment.n_arms, "arm");
  const about = `${experiment.policy} · ${arms} · since ${moment(experiment.created)}`;
  write(find("[data-field=about]", card), about);
  const running = find(".running", card);
  running.dataset.paused = experiment.paused;
  write(running, experiment.paused ? "Paused" : "Running");
}
