// A page that is opened from a disk may start no worker, and the search of the guide is one. Here its script runs in a
// hidden frame instead, with the same messages to and fro.
(() => {
  if (location.protocol !== "file:") return;

  class IFrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      // What the script posts goes out; what is posted to it comes in as an event, once it is there to listen.
      inside.postMessage = (data) => {
        const event = new MessageEvent("message", { data });
        this.onmessage?.(event);
        this.dispatchEvent(event);
      };
      const load = (source) =>
        new Promise((done, failed) => {
          const script = this.frame.contentDocument.createElement("script");
          script.src = new URL(source, location.href).href;
          script.onload = done;
          script.onerror = failed;
          this.frame.contentDocument.body.append(script);
        });
      inside.importScripts = (...sources) => sources.reduce((before, one) => before.then(() => load(one)), Promise.resolve());
      this.ready = load(url);
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  }

  window.IFrameWorker = IFrameWorker;
  window.Worker = IFrameWorker;
})();
