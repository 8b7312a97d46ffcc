// Views without values: the form that asks for a key, and messages.

import { storedKey, storeKey } from "./api.js";
import { find, mount, write } from "./elements.js";
import { showEnded, showKeyNeeded } from "./top.js";

export function showMessage(title, text) {
  const main = mount("#message-view");
  document.title = `${title} · driftbandit`;
  showEnded();
  write(find("[data-field=title]", main), title);
  write(find("[data-field=text]", main), text);
}

/** Ask for a key because of a problem; `onKey` is called once there is one. */
export function showKeyForm(problem, onKey) {
  const main = mount("#key-view");
  document.title = "Key needed · driftbandit";
  showKeyNeeded();
  write(find("[data-field=text]", main), reasonFor(problem, storedKey() !== null));
  const input = find("#key");
  input.addEventListener("input", () => input.setCustomValidity(""));
  find("#key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const key = input.value.trim();
    if (!/^[\x21-\x7e]+$/.test(key)) {
      input.setCustomValidity("A key has no spaces and only ASCII letters, digits and signs.");
      input.reportValidity();
      return;
    }
    storeKey(key);
    onKey();
  });
  input.focus();
}

function reasonFor({ status, message }, hadKey) {
  if (status === 403) return `This key does not suffice. ${message}`;
  if (hadKey) return "The server does not accept this key.";
  return "This server shows experiments only to holders of a key.";
}
