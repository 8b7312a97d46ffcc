// The top line: whether the page is live, and how new its values are.

import { find, write } from "./elements.js";
import { second } from "./format.js";

function showStatus(status, text) {
  find("#status").dataset.status = status;
  write(find("#status"), text);
}

/** A status without values. */
function showEmpty(status, text) {
  showStatus(status, text);
  write(find("#updated"), "");
}

export const showConnecting = () => showEmpty("connecting", "Connecting");
export const showKeyNeeded = () => showEmpty("key", "Key needed");
export const showEnded = () => showEmpty("ended", "Not live");
export const showLive = () => showStatus("live", "Live");
export const showLost = () => showStatus("lost", "Connection lost. Trying again.");
export const showUpdated = (seconds) => write(find("#updated"), `updated ${second(seconds)}`);
