// The view of an experiment: it follows the live stream, and draws every card anew.

import { load } from "../api.js";
import { find, mount, write } from "../elements.js";
import { follow, keepTrying } from "../stream.js";
import { showLive, showLost, showUpdated } from "../top.js";
import { Belief } from "./belief.js";
import { drawCalibration } from "./calibration.js";
import { DrawnArms } from "./drawn.js";
import { drawFacts } from "./facts.js";
import { Legend } from "./legend.js";
import { Log } from "./log.js";
import { drawModels } from "./models.js";
import { Record } from "./record.js";
import { drawRewards } from "./rewards.js";
import { drawShares } from "./shares.js";
import { Timeline } from "./timeline.js";
import { drawWhy } from "./why.js";

/** Show an experiment until the signal says that another view is shown. */
export async function runExperiment(id, signal) {
  const main = mount("#experiment-view");
  delete main.dataset.version; // of another experiment; without it only the title is shown
  write(find("[data-field=id]", main), id);
  const experiment = new Experiment(`v1/experiments/${encodeURIComponent(id)}`, main, signal);
  await keepTrying((succeeded) => experiment.follow(succeeded), signal, showLost);
}

class Experiment {
  record = new Record();
  drawn = new DrawnArms();
  #frame = null; // in which something will be drawn
  #isStale = false; // whether that is everything

  constructor(path, main, signal) {
    [this.path, this.main, this.signal] = [path, main, signal];
    const { record, drawn } = this;
    const redraw = (what) => this.redraw(what);
    this.legend = new Legend(record, drawn, redraw);
    this.belief = new Belief(record, drawn, redraw);
    this.log = new Log(record, redraw);
    const resized = new ResizeObserver(() => this.redraw());
    resized.observe(main);
    signal.addEventListener("abort", () => resized.disconnect());
  }

  // Following

  async follow(succeeded) {
    const past = { state: true, events: true }; // still to be loaded
    for await (const { name, data } of follow(`${this.path}/live`, this.signal)) {
      succeeded();
      showLive();
      try {
        if (name === "state") this.#take(data, past.state);
        if (name === "events") this.#learn(data.events, past.events);
      } catch (error) {
        reportError(error); // a document that is not understood is not a lost connection
      }
      past[name] = false;
    }
  }

  #take(state, isFirst) {
    this.record.take(state);
    this.drawn.follow(this.record);
    this.redraw();
    if (!isFirst) return;
    const limit = this.record.fitting(20, 1000);
    this.#loadPast(`samples?limit=${limit}`, ({ samples }) => this.record.history.load(samples));
  }

  #learn(events, isFirst) {
    const known = this.record.lastNumber, missing = (events[0]?.number ?? 0) - 1;
    this.record.learn(events);
    this.redraw();
    if (!isFirst || missing <= known) return;
    const after = Math.max(known, missing - this.record.fitting(200, 2000));
    const part = `events?after=${after}&limit=${missing - after}`;
    this.#loadPast(part, ({ events: older }) => this.record.learn(older));
  }

  /** Past data is an extra: what cannot be had now comes with the next connection. */
  async #loadPast(part, use) {
    let found;
    try {
      found = await load(`${this.path}/${part}`, this.signal);
    } catch {
      return;
    }
    use(found);
    this.redraw();
  }

  // Drawing

  /** Draw in the next frame: everything, or only what pointing at something changes ("charts"). */
  redraw(what = "everything") {
    this.#isStale ||= what === "everything";
    this.#frame ??= requestAnimationFrame(() => {
      this.#frame = null;
      if (!this.record.state || this.signal.aborted) return;
      this.#draw(this.#isStale);
      this.#isStale = false;
    });
  }

  #draw(everything) {
    const { record, drawn, belief } = this;
    this.main.dataset.version = record.state.version;
    const timeline = new Timeline(record, belief.range);
    const rewards = timeline.among(record.rewards);
    if (everything) {
      drawFacts(record);
      this.legend.draw();
      belief.drawChoices(timeline);
    }
    const plot = belief.draw(timeline, rewards);
    drawRewards(record, rewards, timeline, drawn, plot);
    if (!everything) return;
    drawShares(record, drawn);
    drawCalibration(record);
    drawWhy(record);
    drawModels(record);
    this.log.draw();
    showUpdated(record.state.time);
  }
}
