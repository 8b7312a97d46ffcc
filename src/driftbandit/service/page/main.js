// The live page of the decision service: which view is shown.
//
// The address says it: #/ is the list of experiments, #/ID an experiment.

import { forgetKey, Problem, storedKey } from "./api.js";
import { find } from "./elements.js";
import { runExperiment } from "./experiment/experiment.js";
import { runList } from "./list.js";
import { showKeyForm, showMessage } from "./messages.js";
import { showConnecting } from "./top.js";

let shown = new AbortController(); // ends the view that is shown

async function show() {
  if (location.hash && !location.hash.startsWith("#/")) return;
  shown.abort();
  const { signal } = (shown = new AbortController());
  find("#forget").hidden = storedKey() === null;
  showConnecting();
  const id = experimentId();
  try {
    await (id ? runExperiment(id, signal) : runList(signal));
  } catch (error) {
    if (signal.aborted) return;
    shown.abort(); // so that the view does not draw itself any more
    if (!(error instanceof Problem)) throw error;
    if (error.status === 404) showMessage("Not found", error.message);
    else showKeyForm(error, show);
  }
}

function experimentId() {
  const coded = location.hash.slice(2);
  try {
    return decodeURIComponent(coded);
  } catch {
    return coded;
  }
}

addEventListener("hashchange", () => {
  show();
  scrollTo(0, 0);
  find("#main").focus({ preventScroll: true });
});
// A page that the browser keeps for the Back button follows nothing meanwhile.
addEventListener("pagehide", () => shown.abort());
addEventListener("pageshow", (event) => event.persisted && show());
find("#skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address names the experiment
  find("#main").focus();
});
find("#forget").addEventListener("click", () => {
  forgetKey();
  show();
});
show();
