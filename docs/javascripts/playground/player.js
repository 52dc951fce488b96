// Two runs that go on together: neither is shown further than the other.
(() => {
  "use strict";
  const Playground = (globalThis.Playground ??= {});

  // So long a frame may take for the engine, in ms: the rest is for drawing.
  const PLAY_MS = 10;
  const SEEK_MS = 40;
  const STEP_PS = 1.2e6;

  class Player {
    // `onFrame` is called for each picture, `onEnd` when both runs are over.
    constructor(onFrame, onEnd) {
      Object.assign(this, { onFrame, onEnd, runs: [], time: 0, goal: null, isPlaying: false, speed: 1e8, frames: 0 });
      const tick = (now) => {
        this.tick(now);
        requestAnimationFrame(tick);
      };
      requestAnimationFrame(tick);
    }

    // Takes two runs that have not begun, and goes to this time.
    load(runs, time = 0) {
      Object.assign(this, { runs, time: 0, goal: time > 0 ? time : null, ended: false });
      this.draw();
    }

    get isOver() {
      return this.runs.length > 0 && this.runs.every((run) => run.isOver);
    }

    // When the last of them was over.
    get end() {
      return Math.max(...this.runs.map((run) => run.ended ?? 0));
    }

    play(isPlaying = !this.isPlaying) {
      this.isPlaying = isPlaying && !(this.isOver && this.time >= this.end);
      this.draw();
    }

    // One packet of full size at 10 Gbit/s further.
    step() {
      this.isPlaying = false;
      this.goal = (this.goal ?? this.time) + STEP_PS;
    }

    // As fast as this machine can, to this time.
    seek(time) {
      this.goal = time;
    }

    tick(now) {
      const passed = Math.min(now - (this.before ?? now), 100);
      this.before = now;
      if (!this.runs.length) return;
      if (this.goal !== null) return this.advance(this.goal, SEEK_MS);
      if (this.isPlaying) this.advance(this.time + (passed / 1000) * this.speed, PLAY_MS);
    }

    advance(goal, ms) {
      const begin = performance.now();
      this.runs.forEach((run, place) => run.advance(goal, begin + (ms * (place + 1)) / this.runs.length));
      this.time = Math.max(this.time, Math.min(goal, ...this.runs.map((run) => run.reached)));
      if (this.isOver && this.time >= this.end) this.time = this.end;
      if (this.goal !== null && (this.time >= this.goal || this.isOver)) this.goal = null;
      this.draw();
      if (this.isOver && this.time >= this.end && !this.ended) {
        Object.assign(this, { ended: true, isPlaying: false });
        this.draw();
        this.onEnd();
      }
    }

    draw() {
      if (!this.runs.length) return;
      this.seen = this.runs.map((run) => run.look(Math.min(this.time, run.reached)));
      this.frames += 1;
      this.onFrame(this);
    }
  }

  Object.assign(Playground, { Player });
})();
