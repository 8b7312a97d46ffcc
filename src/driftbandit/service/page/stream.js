// Server-sent events over fetch, since EventSource cannot send the key; and trying again.

import { call } from "./api.js";

const SILENCE = 40_000; // ms; a connection without a byte, not even a ping, is dead
const FIRST_WAIT = 500, LONGEST_WAIT = 30_000; // ms between attempts to connect

/** The messages of an open connection: their names and their JSON data. */
async function* messages(response, onBytes) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "", name = "message", data = [];
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    onBytes();
    const lines = (rest + value).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop();
    for (const line of lines) {
      const colon = line.indexOf(":");
      const field = colon < 0 ? line : line.slice(0, colon);
      const text = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (field === "event") name = text;
      if (field === "data") data.push(text);
      if (line !== "") continue;
      if (data.length) yield { name, data: JSON.parse(data.join("\n")) };
      [name, data] = ["message", []];
    }
  }
}

/** Connect once, and yield messages until the connection ends or falls silent. */
export async function* follow(path, signal) {
  const silence = new AbortController();
  let timer;
  const onBytes = () => {
    clearTimeout(timer);
    timer = setTimeout(() => silence.abort(), SILENCE);
  };
  onBytes();
  try {
    const response = await call(path, AbortSignal.any([signal, silence.signal]));
    yield* messages(response, onBytes);
  } finally {
    clearTimeout(timer);
    silence.abort();
  }
}

/** Wait, but no longer than until the network is back. */
export function wait(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(done, milliseconds);
    function done() {
      clearTimeout(timer);
      removeEventListener("online", done);
      signal.removeEventListener("abort", done);
      resolve();
    }
    addEventListener("online", done);
    signal.addEventListener("abort", done);
  });
}

/**
 * Do `attempt` again and again; after each failure say so and wait, each time twice as long.
 * An attempt calls the function that it is given when it has succeeded in part.
 */
export async function keepTrying(attempt, signal, onFailure) {
  let failures = 0;
  const succeeded = () => { failures = 0; };
  while (!signal.aborted) {
    let least = 0;
    try {
      await attempt(succeeded);
    } catch (error) {
      if (signal.aborted) return;
      if (error.isFinal) throw error;
      least = 1000 * (error.retryAfter ?? 0);
    }
    if (signal.aborted) return;
    failures += 1;
    onFailure();
    const longest = Math.min(FIRST_WAIT * 2 ** (failures - 1), LONGEST_WAIT);
    await wait(Math.max(least, longest * (0.5 + 0.5 * Math.random())), signal);
  }
}
