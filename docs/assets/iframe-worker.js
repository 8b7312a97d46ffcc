// Search runs in a worker, and browsers refuse workers on pages opened from a file.
// There, a hidden frame of the same page plays the worker's part.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    #frame = document.createElement("iframe");
    #loaded;

    constructor(url) {
      super();
      this.#frame.hidden = true;
      document.body.append(this.#frame);
      const inner = this.#frame.contentWindow;
      inner.postMessage = (data) => this.#answer(data);
      inner.importScripts = (...urls) => Promise.all(urls.map((one) => this.#load(one)));
      this.#loaded = this.#load(url);
    }

    async postMessage(data) {
      await this.#loaded;
      this.#frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
    }

    terminate() {
      this.#frame.remove();
    }

    #answer(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      this.onmessage?.(event);
    }

    #load(url) {
      const page = this.#frame.contentDocument;
      return new Promise((resolve, reject) => {
        const script = page.createElement("script");
        Object.assign(script, { src: url, onload: resolve, onerror: reject });
        page.body.append(script);
      });
    }
  };
}
