// The live page of the decision service: the list of experiments, and one experiment.
//
// Names of arms and experiments come from outside. They reach the page only as text nodes and
// attribute values, never as markup.

const KEY = "driftbandit.key"; // in sessionStorage, so that it ends with the tab
const SILENCE = 40_000; // ms; a connection without a byte, not even a ping, is dead
const FIRST_WAIT = 500, LONGEST_WAIT = 30_000; // ms between attempts to connect
const LIST_WAIT = 5_000; // ms between two looks at the list of experiments
const DRAWN_FIRST = 12; // arms drawn until the reader chooses
const COLORS = 8, DASHES = ["", "6 4", "2 3"]; // a line's slot is a color and a dash
const DRAWN_MOST = COLORS * DASHES.length;
const LEGEND_MOST = 24, FOUND_MOST = 60, SHARES_MOST = 12, SCORES_MOST = 10, LOG_MOST = 12;
const NUMBERS_MOST = 200_000; // of history, whatever the number of arms
const REWARDS_MOST = 3_000, DECISIONS_MOST = 20_000;

// Elements

const find = (selector, root = document) => root.querySelector(selector);

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function drawing(tag, attributes = {}, text = null) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== null) made.textContent = text;
  return made;
}

/** Write only what changed, so that selections and screen readers are left alone. */
function write(node, text, value) {
  if (node.textContent !== text) node.textContent = text;
  if (value !== undefined) node.dataset.value = JSON.stringify(value);
}

function mount(view) {
  const main = find("#main");
  main.replaceChildren(find(view).content.cloneNode(true));
  return main;
}

/** Give a table body as many rows as there are items, and fill each. */
function fillRows(body, items, make, fill) {
  while (body.rows.length > items.length) body.rows[body.rows.length - 1].remove();
  while (body.rows.length < items.length) body.append(make());
  items.forEach((item, place) => fill(body.rows[place], item));
}

/** Buttons of which one is pressed; they are made anew only if the choices change. */
function showChoices(box, choices, chosen, choose) {
  const key = JSON.stringify(choices);
  if (box.key !== key) {
    box.replaceChildren(...choices.map(([value, text]) => {
      const attributes = { type: "button", class: "choice", "data-choice": value };
      const button = element("button", attributes, text);
      button.addEventListener("click", () => choose(value));
      return button;
    }));
  }
  box.key = key;
  for (const button of box.children) {
    button.setAttribute("aria-pressed", button.dataset.choice === String(chosen));
  }
}

// Numbers and times

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
const whole = new Intl.NumberFormat("en-US");
const formats = new Map();

function fixed(value, digits) {
  if (!isNumber(value)) return "–";
  if (!formats.has(digits)) {
    const length = { minimumFractionDigits: digits, maximumFractionDigits: digits };
    formats.set(digits, new Intl.NumberFormat("en-US", { ...length, signDisplay: "negative" }));
  }
  return formats.get(digits).format(value).replace("-", "−");
}

/** Decimals that show three significant digits of numbers of this size. */
function decimals(size) {
  const power = size > 0 && Number.isFinite(size) ? Math.floor(Math.log10(size)) : 0;
  return Math.min(Math.max(2 - power, 0), 8);
}

/** A share in percent, with a decimal near 0% and 100%, which it shows only if they are meant. */
function percent(share) {
  const near = Math.min(share, 1 - share);
  return `${fixed(100 * share, near > 0 && near < 0.0995 ? 1 : 0)}%`;
}

const count = (n, one, many = `${one}s`) => `${whole.format(n)} ${n === 1 ? one : many}`;

const formatTime = (options) => {
  const format = new Intl.DateTimeFormat("en-US", { hourCycle: "h23", ...options });
  return (seconds) => format.format(1000 * seconds);
};
const HOUR = { hour: "2-digit", minute: "2-digit" }, DAY = { month: "short", day: "numeric" };
const minute = formatTime(HOUR), second = formatTime({ ...HOUR, second: "2-digit" });
const day = formatTime(DAY), moment = formatTime({ ...DAY, ...HOUR });

/** A time of day, with its date unless that is the date of `now`. */
const when = (seconds, now) => (day(seconds) === day(now) ? second : moment)(seconds);

function duration(seconds) {
  for (const [unit, length] of [["day", 86400], ["hour", 3600], ["minute", 60]]) {
    if (seconds >= length && seconds % length === 0) return count(seconds / length, unit);
  }
  return `${whole.format(seconds)} ${seconds === 1 ? "second" : "seconds"}`;
}

// The service

class Problem extends Error {
  constructor(status, detail, retryAfter) {
    super(detail);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

async function call(path, signal) {
  const key = sessionStorage.getItem(KEY);
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  const response = await fetch(path, { headers, signal, cache: "no-store" });
  if (response.ok) return response;
  const said = await response.json().catch(() => ({}));
  const detail = said.detail ?? said.title ?? `The server answered ${response.status}.`;
  throw new Problem(response.status, detail, Number(response.headers.get("Retry-After")) || 0);
}

/** Problems that another attempt does not solve. */
const isFinal = (error) => error instanceof Problem && [401, 403, 404].includes(error.status);

/** Server-sent events; EventSource cannot send the key. */
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

/** Wait, but no longer than until the network is back. */
function wait(milliseconds, signal) {
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

/** Do `attempt` again and again; after a failure wait, each time twice as long. */
async function keepTrying(attempt, signal) {
  let failures = 0;
  const succeeded = () => { failures = 0; };
  while (!signal.aborted) {
    let least = 0;
    try {
      await attempt(succeeded);
    } catch (error) {
      if (signal.aborted) return;
      if (isFinal(error)) throw error;
      least = 1000 * (error.retryAfter ?? 0);
    }
    if (signal.aborted) return;
    failures += 1;
    showStatus("lost", "Connection lost. Trying again.");
    const longest = Math.min(FIRST_WAIT * 2 ** (failures - 1), LONGEST_WAIT);
    await wait(Math.max(least, longest * (0.5 + 0.5 * Math.random())), signal);
  }
}

function showStatus(status, text) {
  const node = find("#status");
  node.dataset.status = status;
  write(node, text);
}

const showUpdated = (seconds) => write(find("#updated"), `updated ${second(seconds)}`);

// Charts

/** The map that takes low to `from` and high to `to`. */
function linear(low, high, from, to) {
  const slope = (to - from) / (high - low || 1);
  return (value) => from + slope * (value - low);
}

function niceStep(span, most, steps = null) {
  const least = span / most;
  const power = 10 ** Math.floor(Math.log10(least));
  const offered = steps ?? [1, 2, 5, 10].map((n) => n * power);
  return offered.find((step) => step >= least * (1 - 1e-9)) ?? least;
}

function ticksOf(low, high, most, step = niceStep(high - low, most)) {
  const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return Array.from({ length: last - first + 1 }, (_, place) => {
    const value = (first + place) * step;
    return { value, text: fixed(value, digits) };
  });
}

const TIME_STEPS = [
  ...[1, 2, 5, 10, 15, 30],
  ...[1, 2, 5, 10, 15, 30].map((minutes) => 60 * minutes),
  ...[1, 2, 3, 6, 12].map((hours) => 3600 * hours),
  ...[1, 2, 7, 14, 28, 91, 182, 365].map((days) => 86400 * days),
];

function timeTicks(low, high, most) {
  const step = niceStep(high - low, most, TIME_STEPS);
  const zone = -60 * new Date(1000 * low).getTimezoneOffset(); // ticks stand at local full hours
  const text = step < 60 ? second : step < 86400 ? minute : day;
  return ticksOf(low + zone, high + zone, most, step)
    .map(({ value }) => ({ value: value - zone, text: text(value - zone) }));
}

/** Empty a chart, fit it to its box, and return what draws on it. */
function canvas(svg, height, { left, right = 12, top = 24, bottom = 44 }) {
  const width = Math.max(svg.parentElement.clientWidth, 200);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("height", height);
  svg.replaceChildren();
  const add = (tag, attributes, text) => {
    const made = drawing(tag, attributes, text);
    svg.append(made);
    return made;
  };
  return { svg, add, width, height, left, right: width - right, top, bottom: height - bottom };
}

function drawAxes({ add, x, y, left, right, top, bottom }, xTicks, yTicks, xTitle, yTitle) {
  const write = (text, place, anchor) =>
    text && add("text", { class: "tick", "text-anchor": anchor, ...place }, text);
  for (const { value, text } of yTicks) {
    add("line", { class: "grid", x1: left, x2: right, y1: y(value), y2: y(value) });
    write(text, { x: left - 8, y: y(value) + 4 }, "end");
  }
  add("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom });
  for (const { value, text } of xTicks) {
    add("line", { class: "axis", x1: x(value), x2: x(value), y1: bottom, y2: bottom + 5 });
    write(text, { x: x(value), y: bottom + 19 }, "middle");
  }
  write(yTitle, { x: 0, y: top - 11 }, "start");
  write(xTitle, { x: right, y: bottom + 38 }, "end");
}

function addClip({ add, left, right, top, bottom }, id) {
  const box = { x: left, y: top - 6, width: right - left, height: bottom - top + 6 };
  add("clipPath", { id }).append(drawing("rect", box));
}

function drawEnd({ add, x, y }, slot, { at, mean }) {
  add("path", { class: `mark ${slotClass(slot)}`, d: mark(slot, x(at), y(mean), 4) });
}

/** Names at the ends of their lines, with thin leaders where they had to move. */
function drawNames({ add, x, y, top, bottom, width }, series) {
  const labels = series.map(({ arm, slot, points }) => {
    const { at, mean } = points.at(-1);
    return { arm, slot, x: pixel(x(at)), from: y(mean), y: y(mean) };
  });
  for (const label of spread(labels, 17, top, bottom)) {
    const d = `M${label.x + 6} ${pixel(label.from)}L${label.x + 16} ${pixel(label.y)}`;
    add("path", { class: `leader ${slotClass(label.slot)}`, d });
    fit(add("text", { x: label.x + 20, y: label.y + 4 }, String(label.arm)), width - label.x - 20);
  }
}

const widest = (ticks) => Math.max(...ticks.map(({ text }) => text.length), 1);
const leftOf = (ticks) => 14 + 7.5 * widest(ticks);
const pixel = (value) => Math.round(10 * value) / 10;
const path = (points) => points.map(([x, y]) => `${pixel(x)} ${pixel(y)}`).join("L");

/** Marks differ in form as well as in color: circle, square, diamond, triangle. */
const MARKS = [
  (x, y, r) => `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`,
  (x, y, r) => `M${x - r} ${y - r}h${2 * r}v${2 * r}h${-2 * r}z`,
  (x, y, r) => `M${x - 1.3 * r} ${y}L${x} ${y - 1.3 * r}L${x + 1.3 * r} ${y}L${x} ${y + 1.3 * r}z`,
  (x, y, r) => `M${x} ${y - 1.3 * r}l${1.3 * r} ${2.3 * r}h${-2.6 * r}z`,
];
const mark = (slot, x, y, r) => MARKS[slot % MARKS.length](pixel(x), pixel(y), r);
const slotClass = (slot) => (slot === undefined ? "other" : `slot-${slot % COLORS}`);
const dashOf = (slot) => DASHES[Math.floor(slot / COLORS) % DASHES.length];

/** A swatch: the line, dash and mark of a slot. */
function swatch(slot) {
  const attributes = { viewBox: "0 0 24 12", "aria-hidden": "true" };
  const svg = drawing("svg", { class: `swatch ${slotClass(slot)}`, ...attributes });
  if (slot === undefined) svg.append(drawing("path", { class: "mark", d: MARKS[0](12, 6, 3) }));
  else {
    svg.append(drawing("path", { class: "line", d: "M0 6H24", "stroke-dasharray": dashOf(slot) }));
    svg.append(drawing("path", { class: "mark", d: mark(slot, 12, 6, 3.5) }));
  }
  return svg;
}

/** Move labels apart until none overlap, as little as the order allows. */
function spread(labels, gap, low, high) {
  labels.sort((a, b) => a.y - b.y);
  let least = low;
  for (const label of labels) least = (label.y = Math.max(label.y, least)) + gap;
  let most = high;
  for (const label of labels.toReversed()) most = (label.y = Math.min(label.y, most)) - gap;
  return labels;
}

const nameOf = (arm) => shorten(String(arm), 80);
const shorten = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** Shorten a drawn text to a number of pixels. */
function fit(node, room) {
  const text = node.textContent, long = node.getComputedTextLength();
  if (long <= room) return;
  node.textContent = shorten(text, Math.max(Math.floor((text.length * room) / long) - 1, 4));
  node.append(drawing("title", {}, text));
}

function extent(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)];
  return [low, high];
}

/** The range, or one around it if it is a single point. */
function widened(low, high) {
  const isPoint = high - low <= 1e-12 * Math.max(Math.abs(low), 1);
  return isPoint ? [low - 0.5, high + 0.5] : [low, high];
}

const meanOf = (dots) => dots.reduce((sum, { reward }) => sum + reward, 0) / dots.length;

/** The item at the smallest distance. */
function nearest(items, distance) {
  return items.reduce((best, one) => (distance(one) < distance(best) ? one : best));
}

/** The middle part of some numbers, between two quantiles. */
function middle(values, share) {
  const sorted = Float64Array.from(values).sort();
  const skip = Math.floor(share * sorted.length);
  return [sorted[skip], sorted[sorted.length - 1 - skip]];
}

/** The range of an axis. The first bands are wide, so a few may leave the chart; means may not. */
function beliefRange(series, rewards) {
  const points = series.flatMap((one) => one.points);
  const newest = series.map((one) => one.points.at(-1));
  if (!points.length) return [0, 1];
  return widened(...extent([
    ...points.map(({ mean }) => mean),
    ...newest.flatMap(({ mean, spread }) => [mean - spread, mean + spread]),
    ...middle(points.map(({ mean, spread }) => mean - spread), 0.05),
    ...middle(points.map(({ mean, spread }) => mean + spread), 0.05),
    ...(rewards.length ? middle(rewards.map(({ reward }) => reward), 0.02) : []),
  ]));
}

// The history of an experiment

class History {
  samples = [];
  #arms = [];
  #places = new Map();

  /** The place of every arm; the same map as long as the arms are the same. */
  #placesOf(arms) {
    const same = arms.length === this.#arms.length && arms.every((arm, i) => arm === this.#arms[i]);
    if (!same) [this.#arms, this.#places] = [arms, new Map(arms.map((arm, i) => [arm, i]))];
    return this.#places;
  }

  add({ round, time, arms, mean, uncertainty }) {
    const last = this.samples.at(-1);
    if (last && time < last.time) return;
    const at = Math.max(round, last?.round ?? 0); // a stored sample may be a round behind or before
    this.samples.push({ round: at, time, mean, uncertainty, places: this.#placesOf(arms) });
    const most = Math.max(100, NUMBERS_MOST / (arms.length + 1));
    if (this.samples.length > most) this.#thin();
  }

  /** Drop every other sample of the older half. */
  #thin() {
    const half = this.samples.length / 2;
    this.samples = this.samples.filter((_, place) => place > half || place % 2 === 0);
  }

  /** Fill in what the server has stored; the newest sample stays the one that came live. */
  load(stored) {
    const live = this.samples, newest = live.at(-1)?.time ?? Infinity;
    this.samples = [];
    for (const sample of stored) if (sample.time < newest) this.add(sample);
    const end = this.samples.at(-1)?.time ?? -Infinity;
    this.samples.push(...live.filter((sample) => sample.time > end));
  }

  static at(sample, arm) {
    const place = sample.places.get(arm);
    const mean = sample.mean[place], spread = sample.uncertainty[place];
    return isNumber(mean) ? { mean, spread: isNumber(spread) ? 2 * spread : 0 } : null;
  }
}

// One experiment

const KINDS = {
  created: "start",
  model_replaced: "new model",
  refitted: "refit",
  arm_added: "arm added",
  arm_retired: "arm retired",
};

class Experiment {
  history = new History();
  events = []; // newest last
  rewards = []; // {number, time, decision, reward}
  decided = new Map(); // decision -> {arm, round}
  lastNumber = 0;
  drawn = new Map(); // arm -> slot
  chosenByReader = false;
  range = null; // rounds or seconds, 0 for all; null until the reader chooses
  layout = null; // "alone" or "together"; null until the reader chooses
  highlighted = null;
  reading = null; // where on the axis of time values are read
  plotRead = 0; // the panel whose values are read
  onlyChanges = false;

  constructor(id, signal) {
    this.id = id;
    this.signal = signal;
    this.path = `v1/experiments/${encodeURIComponent(id)}`;
  }

  async run() {
    this.main = mount("#experiment-view");
    const fields = [...this.main.querySelectorAll("[data-field]")];
    this.fields = new Map(fields.map((node) => [node.dataset.field, node]));
    write(this.fields.get("id"), this.id);
    this.#listen();
    await keepTrying((succeeded) => this.#follow(succeeded), this.signal);
  }

  async #follow(succeeded) {
    const silence = new AbortController();
    let timer;
    const onBytes = () => {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE);
    };
    onBytes();
    try {
      const signal = AbortSignal.any([this.signal, silence.signal]);
      const response = await call(`${this.path}/live`, signal);
      const past = { state: true, events: true }; // still to be loaded
      for await (const { name, data } of messages(response, onBytes)) {
        succeeded();
        showStatus("live", "Live");
        try {
          this.#receive(name, data, past[name]);
        } catch (error) {
          reportError(error); // a document that is not understood is not a lost connection
        }
        past[name] = false;
      }
    } finally {
      clearTimeout(timer);
      silence.abort();
    }
  }

  #receive(name, data, loadPast) {
    if (name === "state") {
      this.#take(data);
      if (loadPast) this.#loadSamples();
    }
    if (name === "events") {
      const known = this.lastNumber, oldest = data.events[0]?.number ?? 0;
      this.#learn(data.events);
      if (loadPast && oldest > known + 1) this.#loadEvents(known, oldest);
    }
  }

  /** Past data is an extra: what cannot be had now comes with the next connection. */
  async #past(path, use) {
    let found;
    try {
      found = await (await call(path, this.signal)).json();
    } catch {
      return;
    }
    use(found);
    this.draw();
  }

  #loadSamples() {
    const path = `${this.path}/samples?limit=${this.#most(20, 1000)}`;
    return this.#past(path, ({ samples }) => this.history.load(samples));
  }

  #loadEvents(known, oldest) {
    const after = Math.max(known, oldest - 1 - this.#most(200, 2000)); // an event may name all arms
    const path = `${this.path}/events?after=${after}&limit=${oldest - 1 - after}`;
    return this.#past(path, ({ events }) => this.#learn(events));
  }

  /** How many documents to load: fewer if there are many arms. */
  #most(least, most) {
    const fitting = Math.round(NUMBERS_MOST / 2 / (this.state?.arms.length || 1));
    return Math.min(Math.max(fitting, least), most);
  }

  #learn(events) {
    for (const event of events) {
      const { kind, number, time, decision, arm, round, reward } = event;
      if (kind === "decided") this.decided.set(decision, { arm, round });
      if (kind !== "rewarded" || reward === null) continue; // null: reported as missing
      this.rewards.push({ number, time, decision, reward: Number(reward) });
    }
    const merge = (kept, most) => {
      const byNumber = new Map(kept.map((one) => [one.number, one]));
      return [...byNumber.values()].sort((a, b) => a.number - b.number).slice(-most);
    };
    this.events = merge([...this.events, ...events], 500);
    this.rewards = merge(this.rewards, REWARDS_MOST);
    for (const decision of this.decided.keys()) {
      if (this.decided.size <= DECISIONS_MOST) break;
      this.decided.delete(decision);
    }
    this.lastNumber = this.events.at(-1)?.number ?? 0;
    this.draw();
  }

  #take(state) {
    if (this.state && this.state.created !== state.created) this.#forget();
    this.state = state;
    this.byClock = typeof state.rounds_are === "object";
    this.digits = decimals(state.reward_std || Math.abs(state.arms[0]?.mean ?? 1));
    this.arms = new Map(state.arms.map((arm) => [arm.arm, arm]));
    this.byPlays = [...state.arms].sort((a, b) => b.plays - a.plays);
    this.history.add({
      round: state.round,
      time: state.time,
      arms: state.arms.map(({ arm }) => arm),
      mean: state.arms.map(({ mean }) => mean),
      uncertainty: state.arms.map(({ uncertainty }) => uncertainty),
    });
    for (const arm of this.drawn.keys()) if (!this.arms.has(arm)) this.drawn.delete(arm);
    if (!this.chosenByReader) this.#drawMostPlayed();
    this.draw();
  }

  /** The server came back with another experiment of this name. */
  #forget() {
    this.history = new History();
    [this.events, this.rewards, this.lastNumber] = [[], [], 0];
    this.decided.clear();
  }

  // Which arms are drawn

  #drawMostPlayed() {
    const { arms } = this.state;
    const first = (arms.length > DRAWN_FIRST ? this.byPlays : arms).slice(0, DRAWN_FIRST);
    const wanted = new Set(first.map(({ arm }) => arm));
    for (const arm of this.drawn.keys()) if (!wanted.has(arm)) this.drawn.delete(arm);
    for (const arm of wanted) this.#give(arm);
  }

  /** Give an arm the first free slot; it keeps its colors as long as it is drawn. */
  #give(arm) {
    if (this.drawn.has(arm)) return;
    const taken = new Set(this.drawn.values());
    let slot = 0;
    while (taken.has(slot)) slot += 1;
    this.drawn.set(arm, slot);
  }

  #toggle(arm) {
    let note = "";
    if (this.drawn.has(arm)) this.drawn.delete(arm);
    else if (this.drawn.size < DRAWN_MOST) this.#give(arm);
    else note = `${DRAWN_MOST} arms are drawn, as many as can be told apart. Turn one off first.`;
    this.chosenByReader = true;
    write(find("#drawn-note"), note);
    this.draw();
  }

  #armButton(arm) {
    const button = element("button", { type: "button", class: "choice arm", "data-arm": arm });
    button.append(swatch(undefined), element("span", { title: arm }, String(arm)));
    button.addEventListener("click", () => this.#toggle(arm));
    const highlight = (value) => {
      this.highlighted = value;
      this.draw(false);
    };
    button.addEventListener("pointerenter", () => highlight(arm));
    button.addEventListener("focus", () => button.matches(":focus-visible") && highlight(arm));
    button.addEventListener("pointerleave", () => highlight(null));
    button.addEventListener("blur", () => highlight(null));
    return button;
  }

  /** Show these arms' buttons in a box; buttons that stay are not moved, so they keep the focus. */
  #showButtons(box, arms) {
    box.buttons ??= new Map();
    const wanted = new Set(arms);
    for (const [arm, button] of box.buttons) {
      if (wanted.has(arm)) continue;
      button.remove();
      box.buttons.delete(arm);
    }
    arms.forEach((arm, place) => {
      if (!box.buttons.has(arm)) box.buttons.set(arm, this.#armButton(arm));
      const button = box.buttons.get(arm);
      if (box.children[place] !== button) box.insertBefore(button, box.children[place] ?? null);
      const slot = this.drawn.get(arm);
      button.setAttribute("aria-pressed", slot !== undefined);
      if (button.slot === String(slot)) return;
      button.slot = String(slot);
      button.firstChild.replaceWith(swatch(slot));
    });
  }

  // Events of the page

  #listen() {
    const on = (selector, type, react) => find(selector).addEventListener(type, react);
    on("#most-played", "click", () => {
      this.chosenByReader = false;
      if (this.state) this.#drawMostPlayed();
      this.draw();
    });
    on("#none", "click", () => {
      this.chosenByReader = true;
      this.drawn.clear();
      this.draw();
    });
    on("#find", "input", () => this.draw());
    on("#more", "toggle", () => this.draw());
    on("#only-changes", "click", () => {
      this.onlyChanges = !this.onlyChanges;
      find("#only-changes").setAttribute("aria-pressed", this.onlyChanges);
      this.draw();
    });
    const plot = "#belief-plot";
    on(plot, "pointermove", (event) => this.#readAt(event));
    on(plot, "pointerdown", (event) => this.#readAt(event));
    for (const type of ["pointerleave", "blur"]) on(plot, type, () => this.#read(null));
    on(plot, "keydown", (event) => this.#readByKey(event));
    const resized = new ResizeObserver(() => this.draw());
    resized.observe(this.main);
    this.signal.addEventListener("abort", () => resized.disconnect());
  }

  #read(place) {
    if (this.reading === place) return;
    this.reading = place;
    this.draw(false);
  }

  #readAt({ clientX, clientY }) {
    if (!this.shown?.length) return;
    const box = find("#belief-chart").getBoundingClientRect();
    const px = clientX - box.left, py = clientY - box.top;
    const plot = nearest(this.plots, ({ left, right, top, bottom }) =>
      Math.max(left - px, px - right, 0) + Math.max(top - py, py - bottom, 0));
    this.plotRead = this.plots.indexOf(plot);
    const sample = nearest(this.shown, (one) => Math.abs(plot.x(this.at(one)) - px));
    this.#read(this.at(sample));
  }

  #readByKey(event) {
    const last = (this.shown?.length ?? 0) - 1;
    if (last < 0) return;
    const found = this.shown.findIndex((sample) => this.at(sample) === this.reading);
    const now = found < 0 ? last : found;
    const places = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last };
    if (event.key === "Escape") this.#read(null);
    if (!(event.key in places)) return;
    event.preventDefault();
    this.#read(this.at(this.shown[Math.min(Math.max(places[event.key], 0), last)]));
  }

  // Drawing

  /** Draw in the next frame: everything, or only what pointing at something changes. */
  draw(everything = true) {
    this.stale ||= everything;
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      if (!this.state || this.signal.aborted) return;
      if (this.stale) this.#drawAll();
      else this.#drawCharts();
      this.stale = false;
    });
  }

  at = (sample) => (this.byClock ? sample.time : sample.round);
  number = (value) => fixed(value, this.digits);

  /** A mean and its band, rounded more than in tables that explain sums. */
  belief({ mean, spread }) {
    const digits = Math.max(this.digits - 1, 0);
    return spread ? `${fixed(mean, digits)} ± ${fixed(spread, digits)}` : fixed(mean, digits);
  }

  #drawAll() {
    this.#drawFacts();
    this.#drawLegend();
    this.#drawRanges();
    this.#drawCharts();
    this.#drawShares();
    this.#drawCalibration();
    this.#drawWhy();
    this.#drawModels();
    this.#drawLog();
    showUpdated(this.state.time);
    this.main.dataset.version = this.state.version;
  }

  #drawCharts() {
    this.#drawBelief();
    this.#drawRewards();
  }

  #drawFacts() {
    const { state } = this;
    const field = (name, text, value) => write(this.fields.get(name), text, value);
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
    const time = this.byClock
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

  #drawLegend() {
    const many = this.state.arms.length > LEGEND_MOST;
    const all = this.state.arms.map(({ arm }) => arm);
    this.#showButtons(find("#legend"), many ? all.filter((arm) => this.drawn.has(arm)) : all);
    write(find("#most-played"), all.length > DRAWN_FIRST ? "Draw the most played" : "Draw all");
    find("#more").hidden = !many;
    if (!many || !find("#more").open) return;
    const wanted = find("#find").value.toLowerCase();
    const found = this.byPlays.map(({ arm }) => arm)
      .filter((arm) => String(arm).toLowerCase().includes(wanted));
    // While a button has the focus, the buttons keep their order.
    const box = find("#found");
    const key = `${wanted}/${found.length}`, used = box.contains(document.activeElement);
    if (!used || box.key !== key) box.arms = found.slice(0, FOUND_MOST);
    box.key = key;
    this.#showButtons(box, box.arms.filter((arm) => this.arms.has(arm)));
    const shown = `${count(found.length, "arm")} of ${whole.format(all.length)}.`;
    const rest = found.length > FOUND_MOST ? ` The ${FOUND_MOST} most played are shown.` : "";
    write(find("#found-note"), shown + rest);
  }

  #drawRanges() {
    const first = this.history.samples[0], last = this.history.samples.at(-1);
    const span = this.at(last) - this.at(first);
    const words = this.byClock
      ? [[3600, "1 hour"], [86400, "1 day"], [604800, "1 week"]]
      : [[100, "100 rounds"], [1000, "1,000 rounds"], [10000, "10,000 rounds"]];
    const usual = words[1][0];
    const ranges = [...words.filter(([length]) => length < span), [0, "All"]];
    this.length = ranges.find(([length]) => length === (this.range ?? usual))?.[0] ?? 0;
    const offered = ranges.length > 1 ? ranges : [];
    showChoices(find("#ranges"), offered, this.length, (length) => {
      this.range = length;
      this.draw();
    });
    const layouts = this.drawn.size > 1 ? [["alone", "One by one"], ["together", "Together"]] : [];
    showChoices(find("#layouts"), layouts, this.#layout(), (layout) => {
      this.layout = layout;
      this.draw();
    });
  }

  /** More than three bands on top of each other cannot be read. */
  #layout() {
    if (this.drawn.size < 2) return "together";
    return this.layout ?? (this.drawn.size > 3 ? "alone" : "together");
  }

  /** The part of the time axis that is shown. */
  #span() {
    const first = this.at(this.history.samples[0]), last = this.at(this.history.samples.at(-1));
    const low = this.length ? last - this.length : first;
    return [low, Math.max(last, low + 1)];
  }

  #timeTicks(wide, low, high) {
    const most = Math.max(3, Math.floor(wide / 100));
    if (this.byClock) return timeTicks(low, high, most);
    return ticksOf(low, high, most, Math.max(1, niceStep(high - low, most)));
  }

  #timeTitle = () => (this.byClock ? "time of day" : "round");
  #isFaded = (arm) => this.drawn.has(this.highlighted) && this.highlighted !== arm;

  /** What was believed of the drawn arms, at no more times than there are pixels. */
  #series(low, width) {
    const { samples } = this.history;
    const start = Math.max(samples.findIndex((sample) => this.at(sample) >= low) - 1, 0);
    const last = samples.length - 1;
    const every = Math.ceil((last + 1 - start) / Math.max(width / 2, 100));
    this.shown = samples.filter((_, place) => place >= start && (last - place) % every === 0);
    const pointsOf = (arm) => this.shown
      .map((sample) => ({ at: this.at(sample), ...History.at(sample, arm) }))
      .filter((point) => isNumber(point.mean));
    return [...this.drawn].sort(([, a], [, b]) => a - b)
      .map(([arm, slot]) => ({ arm, slot, points: pointsOf(arm) }))
      .filter(({ points }) => points.length);
  }

  /** The rewards that are known between two times. */
  #rewardsBetween(low, high) {
    const found = [];
    for (const { time, decision, reward } of this.rewards) {
      const made = this.decided.get(decision);
      const at = this.byClock ? time : made?.round;
      if (at >= low && at <= high) found.push({ at, reward, arm: made?.arm });
    }
    return found;
  }

  #drawBelief() {
    const svg = find("#belief-chart");
    const [low, high] = this.#span();
    const width = svg.parentElement.clientWidth;
    const series = this.#series(low, width);
    const alone = this.#layout() === "alone" && series.length > 1;
    const rewards = Map.groupBy(alone ? this.#rewardsBetween(low, high) : [], ({ arm }) => arm);
    const [bottom, top] = beliefRange(series, [...rewards.values()].flat());
    const chart = { svg, width, low, high, bottom, top, rewards };
    this.plots = alone ? this.#drawAlone(chart, series) : this.#drawTogether(chart, series);
    this.#drawReading(chart, series);
    const changed = svg.querySelector(".change") ? " Dotted lines: the model changed." : "";
    svg.dataset.samples = this.shown.length;
    write(find("#chart-note"), (alone ? "Dots: rewards." : "") + changed);
    const now = series.map(({ arm, points }) => `${arm} ${this.belief(points.at(-1))}`).join(", ");
    const time = this.byClock ? moment : (round) => `round ${whole.format(round)}`;
    const what = `Believed reward of ${count(series.length, "arm")}`;
    const span = `${time(low)} to ${time(high)}`;
    svg.setAttribute("aria-label", `${what}, ${span}. Now: ${now || "none drawn"}.`);
  }

  /** All arms in one chart, with their names at the ends of the lines. */
  #drawTogether(picture, series) {
    const { svg, width, low, high, bottom, top } = picture;
    const yTicks = ticksOf(bottom, top, 5);
    const labeled = width >= 640;
    const longest = Math.max(...series.map(({ arm }) => String(arm).length), 0);
    const right = labeled ? Math.min(28 + 7.5 * longest, 190) : 12;
    const chart = canvas(svg, width < 560 ? 260 : 340, { left: leftOf(yTicks), right });
    const x = linear(low, high, chart.left, chart.right);
    const y = linear(bottom, top, chart.bottom, chart.top);
    const plot = { ...chart, x, y };
    const xTicks = this.#timeTicks(chart.right - chart.left, low, high);
    drawAxes(plot, xTicks, yTicks, this.#timeTitle(), "believed reward");
    this.#drawChanges(plot, picture, "believed reward".length);
    addClip(plot, "belief-clip");
    svg.classList.toggle("crowded", series.length > 3);
    for (const one of series) this.#drawSeries(plot, one, "belief-clip");
    for (const { slot, points } of series) drawEnd(plot, slot, points.at(-1));
    if (labeled) drawNames(plot, series);
    if (series.length === 0) {
      const place = { x: (chart.left + chart.right) / 2, y: (chart.top + chart.bottom) / 2 };
      const none = "The policy has no model of these arms.";
      const text = this.drawn.size ? none : "Choose an arm to draw it.";
      chart.add("text", { class: "empty", "text-anchor": "middle", ...place }, text);
    }
    return [plot];
  }

  /** A panel for each arm; all have the same scales. */
  #drawAlone(picture, series) {
    const { svg, width, low, high, bottom, top } = picture;
    svg.classList.remove("crowded");
    const HEAD = 42, HIGH = 112, GAP = 32;
    const most = width < 600 ? 1 : width < 1000 ? 2 : series.length > 9 ? 4 : 3;
    const rows = Math.ceil(series.length / most), columns = Math.ceil(series.length / rows);
    const yTicks = ticksOf(bottom, top, 4);
    const chart = canvas(svg, rows * (HEAD + HIGH) + 44, { left: leftOf(yTicks), right: 12 });
    const wide = (chart.right - chart.left - GAP * (columns - 1)) / columns;
    const xTicks = this.#timeTicks(wide, low, high);
    chart.add("text", { class: "tick", x: 0, y: chart.height - 6 }, "↑ believed reward");
    return series.map((one, place) => {
      const column = place % columns, row = Math.floor(place / columns);
      const left = chart.left + column * (wide + GAP), above = row * (HEAD + HIGH) + HEAD;
      const plot = { ...chart, left, right: left + wide, top: above, bottom: above + HIGH };
      plot.x = linear(low, high, plot.left, plot.right);
      plot.y = linear(bottom, top, plot.bottom, plot.top);
      const silent = (ticks) => ticks.map(({ value }) => ({ value, text: "" }));
      const times = place + columns < series.length ? silent(xTicks) : xTicks;
      const title = place === series.length - 1 ? this.#timeTitle() : "";
      drawAxes(plot, times, column ? silent(yTicks) : yTicks, title);
      this.#drawChanges(plot, picture, null);
      addClip(plot, `belief-clip-${place}`);
      this.#drawSeries(plot, one, `belief-clip-${place}`, picture.rewards.get(one.arm) ?? []);
      drawEnd(plot, one.slot, one.points.at(-1));
      this.#drawPanelHead(plot, one);
      return plot;
    });
  }

  #drawPanelHead(plot, { arm, slot, points }) {
    const sample = this.#sampleRead();
    const belief = sample ? History.at(sample, arm) : points.at(-1);
    const value = belief ? this.belief(belief) : "–";
    const { add, left, right } = plot, y = plot.top - 14;
    add("path", { class: `mark ${slotClass(slot)}`, d: mark(slot, left + 5, y - 4.5, 4.5) });
    const end = add("text", { class: "value", x: right, y, "text-anchor": "end" }, value);
    const name = add("text", { class: "name", x: left + 16, y }, String(arm));
    fit(name, right - left - 28 - end.getComputedTextLength());
  }

  #drawSeries(plot, { slot, arm, points }, clip, rewards = []) {
    const { x, y } = plot;
    let tone = this.#isFaded(arm) ? "faded" : this.highlighted === arm ? "strong" : "";
    if (this.#layout() === "alone") tone = ""; // nothing covers it
    const kind = `series ${slotClass(slot)} ${tone}`;
    const group = plot.add("g", { class: kind, "clip-path": `url(#${clip})` });
    const over = points.map(({ at, mean, spread }) => [x(at), y(mean + spread)]);
    const under = points.map(({ at, mean, spread }) => [x(at), y(mean - spread)]).reverse();
    group.append(drawing("path", { class: "band", d: `M${path([...over, ...under])}Z` }));
    const dots = rewards.map(({ at, reward }) => MARKS[0](pixel(x(at)), pixel(y(reward)), 1.75));
    group.append(drawing("path", { class: "mark dots", d: dots.join("") }));
    const d = `M${path(points.map(({ at, mean }) => [x(at), y(mean)]))}`;
    group.append(drawing("path", { class: "line", d, "stroke-dasharray": dashOf(slot) }));
  }

  /** Thin lines where the model changed, with words if there is room beside the axis title. */
  #drawChanges(plot, { low, high }, titleLength) {
    const { samples } = this.history;
    let free = 7.5 * titleLength;
    for (const { kind, time } of this.state.models) {
      if (kind === "created") continue;
      const at = this.byClock ? time : samples.find((sample) => sample.time >= time)?.round;
      if (!(at > low && at <= high)) continue;
      const x = plot.x(at), y = plot.top - 11;
      plot.add("line", { class: "change", x1: x, x2: x, y1: plot.top - 4, y2: plot.bottom });
      const text = KINDS[kind] ?? kind, half = 3.7 * text.length;
      const middle = Math.min(Math.max(x, plot.left + half), plot.right - half);
      if (titleLength === null || middle - half < free) continue;
      plot.add("text", { class: "tick", x: middle, y, "text-anchor": "middle" }, text);
      free = middle + half + 8;
    }
  }

  // Reading values off the chart

  #sampleRead() {
    return this.shown.find((sample) => this.at(sample) === this.reading);
  }

  #drawReading({ width }, series) {
    const box = find("#reading");
    const sample = this.#sampleRead();
    box.hidden = !sample;
    if (!sample) return;
    const at = this.reading;
    const rows = series.map(({ arm, slot }) => ({ arm, slot, belief: History.at(sample, arm) }))
      .filter(({ belief }) => belief).sort((a, b) => b.belief.mean - a.belief.mean);
    this.plots.forEach((plot, place) => {
      const x = plot.x(at);
      if (x < plot.left) return;
      plot.add("line", { class: "cursor", x1: x, x2: x, y1: plot.top - 4, y2: plot.bottom });
      for (const { arm, slot, belief } of rows) {
        const isHere = this.plots.length === 1 || series[place].arm === arm;
        if (isHere) drawEnd(plot, slot, { at, ...belief });
      }
    });
    const title = this.byClock ? when(at, this.state.time) : `Round ${whole.format(at)}`;
    const lines = rows.map(({ arm, slot, belief }) => element("li", {},
      swatch(slot),
      element("span", { class: "name" }, String(arm)),
      element("span", { class: "number" }, this.belief(belief))));
    const text = title + lines.map((line) => line.textContent).join();
    if (box.text !== text) {
      box.replaceChildren(element("strong", {}, title), element("ul", {}, ...lines));
    }
    box.text = text;
    box.dataset.layout = this.#layout(); // panels show the values themselves
    const plot = this.plots[this.plotRead] ?? this.plots[0];
    const x = plot.x(at), wide = box.offsetWidth;
    const place = x > (plot.left + plot.right) / 2 ? x - wide - 10 : x + 10;
    box.style.left = `${Math.max(0, Math.min(place, width - wide))}px`;
    box.style.top = `${plot.top}px`;
  }

  #drawRewards() {
    const [low, high] = this.#span();
    const dots = this.#rewardsBetween(low, high);
    let [bottom, top] = dots.length ? extent(dots.map(({ reward }) => reward)) : [0, 1];
    const range = `from ${this.number(bottom)} to ${this.number(top)}`;
    const some = `${count(dots.length, "reward")} ${range}, mean ${this.number(meanOf(dots))}.`;
    const said = dots.length ? some : "No rewards yet.";
    [bottom, top] = widened(bottom, top);
    const yTicks = ticksOf(bottom, top, 4);
    const svg = find("#rewards-chart");
    const chart = canvas(svg, 190, { left: leftOf(yTicks) });
    const x = linear(low, high, chart.left, chart.right);
    const y = linear(bottom, top, chart.bottom - 6, chart.top);
    const xTicks = this.#timeTicks(chart.right - chart.left, low, high);
    drawAxes({ ...chart, x, y }, xTicks, yTicks, this.#timeTitle(), "reward");
    const bySlot = Map.groupBy(dots, ({ arm }) => this.drawn.get(arm));
    const slots = [...bySlot.keys()].sort((a, b) => (a ?? -1) - (b ?? -1)); // other arms lie behind
    const bright = this.drawn.get(this.highlighted);
    for (const slot of slots) {
      const size = slot === undefined ? 2 : 3;
      const marks = bySlot.get(slot).map((dot) => mark(slot ?? 0, x(dot.at), y(dot.reward), size));
      const tone = bright !== undefined && bright !== slot ? "faded" : "";
      chart.add("path", { class: `mark dots ${slotClass(slot)} ${tone}`, d: marks.join("") });
    }
    svg.setAttribute("aria-label", said);
    const others = bySlot.has(undefined) ? " Gray: arms that are not drawn." : "";
    write(find("#rewards-note"), said + others);
  }

  #drawShares() {
    const { arms, retired } = this.state;
    const shown = this.byPlays.slice(0, arms.length <= SHARES_MOST + 4 ? arms.length : SHARES_MOST);
    const most = Math.max(...shown.map(({ share }) => share), 1e-9);
    const make = () => element("tr", {},
      element("th", { scope: "row" }, swatch(undefined), element("span")),
      element("td", { class: "share" }, element("span"), element("span", { class: "number" })),
      element("td", { class: "number", "data-label": "Plays" }),
      element("td", { class: "number", "data-label": "Average reward" }),
      element("td", { class: "number", "data-label": "Believed" }));
    fillRows(find("#shares-table tbody"), shown, make, (row, arm) => {
      const [head, share, plays, reward, believed] = row.cells;
      const slot = this.drawn.get(arm.arm);
      row.dataset.arm = arm.arm;
      if (row.slot !== String(slot)) head.firstChild.replaceWith(swatch(slot));
      row.slot = String(slot);
      write(head.lastChild, nameOf(arm.arm));
      share.firstChild.className = `bar ${slotClass(slot)}`;
      share.firstChild.style.width = `${(60 * arm.share) / most}%`;
      write(share.lastChild, percent(arm.share), arm.share);
      write(plays, whole.format(arm.plays), arm.plays);
      write(reward, this.number(arm.mean_reward), arm.mean_reward);
      const belief = { mean: arm.mean, spread: 2 * (arm.uncertainty ?? 0) };
      write(believed, isNumber(arm.mean) ? this.belief(belief) : "–", arm.mean);
    });
    const rest = this.byPlays.slice(shown.length);
    const share = percent(rest.reduce((sum, one) => sum + one.share, 0));
    const notes = [];
    if (rest.length) notes.push(`${count(rest.length, "other arm")}: ${share} of decisions.`);
    if (retired.length) notes.push(`Retired: ${shorten(retired.join(", "), 200)}.`);
    write(find("#shares-note"), notes.join(" "));
  }

  #drawCalibration() {
    const { calibration } = this.state;
    const verdict = find("#verdict");
    verdict.dataset.holds = calibration ? calibration.holds : "";
    write(verdict, calibration ? calibration.summary : "Too few rewards so far.");
    find("#calibration-charts").hidden = !calibration;
    if (!calibration) return;
    this.#drawSurprises(calibration.surprises);
    this.#drawSquare(calibration);
  }

  #drawSurprises(surprises) {
    const END = 4, STEP = 0.5, bins = new Array((2 * END) / STEP).fill(0);
    for (const value of surprises) {
      const place = Math.floor((value + END) / STEP);
      bins[Math.min(Math.max(place, 0), bins.length - 1)] += 1 / surprises.length;
    }
    const normal = (u) => (STEP * Math.exp((-u * u) / 2)) / Math.sqrt(2 * Math.PI);
    const top = Math.max(...bins, normal(0)) * 1.08;
    const yTicks = ticksOf(0, 100 * top, 4)
      .map(({ value, text }) => ({ value: value / 100, text: `${text}%` }));
    const svg = find("#surprises-chart");
    const chart = canvas(svg, 220, { left: leftOf(yTicks) });
    const x = linear(-END, END, chart.left, chart.right);
    const y = linear(0, top, chart.bottom, chart.top);
    const unit = "surprise (standard deviations)";
    drawAxes({ ...chart, x, y }, ticksOf(-END, END, 4), yTicks, unit, "share of rewards");
    const bars = bins.map((share, place) => {
      const from = x(-END + STEP * place) + 1, to = x(-END + STEP * (place + 1)) - 1;
      return `M${pixel(from)} ${chart.bottom}V${pixel(y(share))}H${pixel(to)}V${chart.bottom}Z`;
    });
    chart.add("path", { class: "histogram", d: bars.join("") });
    const curve = Array.from({ length: 81 }, (_, place) => -END + place / 10);
    chart.add("path", { class: "normal", d: `M${path(curve.map((u) => [x(u), y(normal(u))]))}` });
    const corner = { x: chart.right, y: chart.top + 4, "text-anchor": "end" };
    chart.add("text", corner, "curve: standard normal");
    const inside = surprises.filter((value) => Math.abs(value) <= 2).length;
    const found = `${percent(inside / surprises.length)} lie within ± 2`;
    const what = `Histogram of ${count(surprises.length, "surprise")}.`;
    svg.setAttribute("aria-label", `${what} ${found}; 95% would if the model holds.`);
  }

  #drawSquare({ mean_square: value, low, high, rewards }) {
    const svg = find("#square-chart");
    const chart = canvas(svg, 84, { left: 12, right: 24, top: 34, bottom: 28 });
    const { add, left, right, top, bottom, width } = chart;
    const end = Math.max(1.25 * high, 1.1 * value, 1.25);
    const x = linear(0, end, left, right);
    const range = { x: x(low), width: Math.max(x(high) - x(low), 1) };
    add("rect", { class: "normal-range", ...range, y: top, height: bottom - top });
    add("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom });
    for (const { value: tick, text } of ticksOf(0, end, 4)) {
      add("text", { class: "tick", x: x(tick), y: bottom + 18, "text-anchor": "middle" }, text);
    }
    const isNormal = value >= low && value <= high;
    const d = mark(isNormal ? 0 : 2, x(value), (top + bottom) / 2, 6);
    add("path", { class: `square ${isNormal ? "good" : "bad"}`, d });
    const text = `${fixed(value, 2)}, normal ${fixed(low, 2)} to ${fixed(high, 2)}`;
    const label = add("text", { y: top - 10, "text-anchor": "middle" }, text);
    const half = label.getComputedTextLength() / 2;
    label.setAttribute("x", Math.min(Math.max(x(value), half), width - half));
    Object.assign(svg.dataset, { value, low, high });
    const what = `Mean square of the surprises of ${count(rewards, "reward")}`;
    svg.setAttribute("aria-label", `${what}: ${text}.`);
  }

  #drawWhy() {
    const { last } = this.state;
    const total = ({ mean, bonus }) => (isNumber(mean) && isNumber(bonus) ? mean + bonus : null);
    const scores = (last?.scores ?? [])
      .map((score) => ({ ...score, total: total(score), chosen: score.arm === last.arm }));
    const order = (score) => score.total ?? score.mean ?? -Infinity;
    scores.sort((a, b) => order(b) - order(a) || b.chosen - a.chosen);
    const shown = scores.slice(0, SCORES_MOST);
    const chosen = scores.find((score) => score.chosen);
    if (chosen && !shown.includes(chosen)) shown.push(chosen);
    const cell = (name) => element("td", { class: "number", "data-score": name });
    const tag = () => element("strong", { class: "tag" }, "chosen");
    const make = () => element("tr", {},
      element("th", { scope: "row" }, element("span"), " ", tag()),
      ...["mean", "bonus", "total", "uncertainty"].map(cell));
    fillRows(find("#why-table tbody"), shown, make, (row, score) => {
      row.dataset.arm = score.arm;
      row.classList.toggle("chosen", score.chosen);
      write(find("span", row), nameOf(score.arm));
      find(".tag", row).hidden = !score.chosen;
      for (const cell of row.querySelectorAll("td")) {
        const value = score[cell.dataset.score] ?? null;
        write(cell, this.number(value), value);
      }
    });
    find("#why-table").hidden = !scores.length;
    const said = last ? this.#whySentence(last, chosen, scores) : "No decision yet.";
    write(find("#why-summary"), said);
    const notes = scores.length ? ["Total = mean + bonus."] : [];
    if (scores.some(({ bonus }) => !isNumber(bonus))) {
      notes.push("A dash: the policy gives no bonus, or an unlimited one to an untried arm.");
    }
    if (scores.length > shown.length) {
      notes.push(`${shown.length} of ${whole.format(scores.length)} arms are shown.`);
    }
    write(find("#why-note"), notes.join(" "));
  }

  #whySentence({ decision, round, arm }, chosen, scores) {
    const place = `Decision ${whole.format(decision)}, round ${whole.format(round)}`;
    const start = `${place}: ${nameOf(arm)}.`;
    if (!chosen || chosen.total === null) return start;
    const leads = (name) => scores.every((score) => !(score[name] > chosen[name]));
    if (!leads("total")) return `${start} Others have a higher total: the policy has another rule.`;
    const because = leads("mean") ? "and the highest mean" : "thanks to its bonus";
    return `${start} It has the highest total, ${because}.`.replace(", and", " and");
  }

  #drawModels() {
    const { models, refit, time } = this.state;
    const make = () => element("tr", {},
      element("th", { scope: "row" }, element("span"), element("small")), element("td"),
      ...[0, 1, 2].map(() => element("td", { class: "number" })));
    fillRows(find("#models-table tbody"), models.toReversed(), make, (row, model) => {
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
    const more = count(refit?.next_after ?? 0, "more reward");
    let said = "This experiment does not refit its model.";
    if (refit) said = refit.next_after === null ? "No refit is due." : `Next refit: after ${more}.`;
    if (refit?.in_progress) said = "A refit is running.";
    if (refit?.failure) said += ` The last refit failed: ${refit.failure}`;
    write(find("#refit"), said);
    find("#refit").classList.toggle("bad", Boolean(refit?.failure));
  }

  #drawLog() {
    const hidden = this.onlyChanges ? ["decided", "rewarded"] : [];
    const kept = this.events.filter(({ kind }) => !hidden.includes(kind));
    const shown = kept.slice(-LOG_MOST).reverse();
    const log = find("#log");
    const key = `${hidden} ${shown[0]?.number} ${shown.length}`;
    if (log.key === key) return;
    log.key = key;
    const line = (event) => {
      const datetime = new Date(1000 * event.time).toISOString();
      return element("li", { "data-number": event.number, "data-kind": event.kind },
        element("time", { datetime }, when(event.time, this.state.time)),
        element("span", {}, this.#eventText(event)));
    };
    log.replaceChildren(...shown.map(line));
    if (!shown.length) log.append(element("li", {}, "Nothing among the newest 500 events."));
  }

  #eventText(event) {
    const { kind, decision, arm, round, reward, reason } = event;
    const known = this.decided.get(decision);
    const of = known ? `${decision} (${nameOf(known.arm)})` : decision;
    const why = reason ? `: ${reason}` : "";
    switch (kind) {
      case "created": return "Experiment created";
      case "decided": return `Decision ${decision} in round ${round}: ${nameOf(arm)}`;
      case "rewarded":
        if (reward === null) return `No reward for decision ${of}`;
        return `Reward ${this.number(Number(reward))} for decision ${of}`;
      case "arm_added": return `Arm added: ${nameOf(arm)}`;
      case "arm_retired": return `Arm retired: ${nameOf(arm)}`;
      case "model_replaced": return "Model replaced";
      case "refit_started": return "Refit started";
      case "refitted":
        return `Model refitted: ${count(event.rewards, "reward")}, ${fixed(event.seconds, 1)} s`;
      case "refit_failed": return `Refit failed${why}`;
      case "paused": return `Paused${why}`;
      case "resumed": return "Resumed";
      default: return kind;
    }
  }
}

// The list of experiments

async function runList(signal) {
  const list = find("#experiments", mount("#list-view"));
  document.title = "Experiments · driftbandit";
  await keepTrying(async (succeeded) => {
    for (;;) {
      const { experiments } = await (await call("v1/experiments", signal)).json();
      succeeded();
      showStatus("live", "Live");
      showUpdated(Date.now() / 1000);
      showList(list, experiments);
      await wait(LIST_WAIT, signal);
      if (signal.aborted) return;
    }
  }, signal);
}

function showList(list, experiments) {
  const cards = new Map([...list.children].map((card) => [card.dataset.experiment, card]));
  experiments.toSorted((a, b) => b.created - a.created).forEach((experiment, place) => {
    const card = cards.get(experiment.id) ?? makeCard(experiment.id);
    cards.delete(experiment.id);
    fillCard(card, experiment);
    if (list.children[place] !== card) list.insertBefore(card, list.children[place] ?? null);
  });
  for (const card of cards.values()) card.remove();
  if (experiments.length) return;
  const code = (text) => element("code", {}, text);
  list.replaceChildren(element("li", { class: "card message", "data-experiment": "" },
    element("p", {}, "No experiments yet. ", code("POST /v1/experiments"), " makes one; ",
      code("driftbandit serve --demo"), " shows one with simulated traffic.")));
}

const CARD_FACTS = { round: "Round", decisions: "Decisions", rewards: "Rewards" };

function makeCard(id) {
  const facts = Object.entries(CARD_FACTS).map(([name, title]) =>
    element("div", {}, element("dt", {}, title), element("dd", { "data-field": name })));
  return element("li", { class: "card", "data-experiment": id },
    element("div", { class: "heading" },
      element("h2", {}, element("a", { href: `#/${encodeURIComponent(id)}` }, id)),
      element("strong", { class: "running" })),
    element("p", { class: "dim", "data-field": "about" }),
    element("dl", {}, ...facts));
}

function fillCard(card, experiment) {
  for (const name of Object.keys(CARD_FACTS)) {
    write(find(`[data-field=${name}]`, card), whole.format(experiment[name]), experiment[name]);
  }
  const arms = count(experiment.n_arms ?? experiment.names.length, "arm");
  const about = `${experiment.policy} · ${arms} · since ${moment(experiment.created)}`;
  write(find("[data-field=about]", card), about);
  const running = find(".running", card);
  running.dataset.paused = experiment.paused;
  write(running, experiment.paused ? "Paused" : "Running");
}

// Which view is shown

function showKeyForm(problem) {
  const had = sessionStorage.getItem(KEY) !== null;
  const main = mount("#key-view");
  document.title = "Key needed · driftbandit";
  showStatus("key", "Key needed");
  write(find("#updated"), "");
  let text = "This server shows experiments only to holders of a key.";
  if (had) text = "The server does not accept this key.";
  if (problem.status === 403) text = `This key does not suffice. ${problem.message}`;
  write(find("[data-field=text]", main), text);
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
    sessionStorage.setItem(KEY, key);
    show();
  });
  input.focus();
}

function showMessage(title, text) {
  const main = mount("#message-view");
  document.title = `${title} · driftbandit`;
  showStatus("ended", "Not live");
  write(find("#updated"), "");
  write(find("[data-field=title]", main), title);
  write(find("[data-field=text]", main), text);
}

let shown = new AbortController();

async function show() {
  if (location.hash && !location.hash.startsWith("#/")) return;
  shown.abort();
  const mine = (shown = new AbortController());
  find("#forget").hidden = sessionStorage.getItem(KEY) === null;
  showStatus("connecting", "Connecting");
  write(find("#updated"), "");
  const id = experimentId();
  try {
    await (id ? new Experiment(id, mine.signal).run() : runList(mine.signal));
  } catch (error) {
    if (mine.signal.aborted) return;
    if (error instanceof Problem && error.status === 404) showMessage("Not found", error.message);
    else if (isFinal(error)) showKeyForm(error);
    else throw error;
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
  sessionStorage.removeItem(KEY);
  show();
});
show();
