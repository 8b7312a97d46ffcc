// The title of an experiment and its counts.

import { find, write } from "../elements.js";
import { count, duration, moment, percent, when, whole } from "../format.js";

export function drawFacts({ state, byClock }) {
  const field = (name, text, value) => write(find(`[data-field=${name}]`), text, value);
  document.title = `${state.id} · driftbandit`;
  for (const name of ["round", "decisions", "rewards", "open"]) {
    field(name, whole.format(state[name]), state[name]);
  }
  const parts = [
    state.policy_title,
    count(state.arms.length, "arm"),
    count(state.n_states, "state"),
    `since ${moment(state.created)}`,
  ];
  field("about", parts.join(" · "), state.policy);
  const time = byClock
    ? `one round lasts ${duration(state.rounds_are.seconds)}`
    : "each decision starts a round";
  field("time", time, state.rounds_are);
  field("window", `window: ${count(state.window, "round")}`, state.window);
  field("last", state.last ? `last at ${when(state.last.time, state.time)}` : "none yet");
  const rewarded = `for ${percent(state.rewards / state.decisions)} of decisions`;
  field("rewarded", state.decisions ? rewarded : "none yet");
  const reason = state.paused_reason ? `: ${state.paused_reason}` : "";
  find("#running").dataset.paused = state.paused;
  write(find("#running"), state.paused ? `Paused${reason}` : "Running");
}
