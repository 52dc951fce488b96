// What can be done to a cable, beside where it was clicked. The lists below the pictures do the same for keys.
(() => {
  "use strict";
  const Playground = (globalThis.Playground ??= {});
  const GAP = 12;

  class Popup {
    // `act` is called with "cut", "slow" or "mend".
    constructor(element, act) {
      this.element = element;
      this.buttons = [...element.querySelectorAll("[data-act]")];
      for (const button of this.buttons) {
        button.addEventListener("click", () => {
          this.hide();
          act(button.dataset.act);
        });
      }
    }

    // Beside a point of the window, within the box that it is drawn in.
    show(name, isFaulty, event) {
      const { element } = this;
      element.querySelector("b").textContent = name;
      for (const button of this.buttons) button.hidden = (button.dataset.act === "mend") !== isFaulty;
      element.hidden = false;
      const box = element.offsetParent.getBoundingClientRect();
      const left = Math.min(event.clientX - box.left + GAP, box.width - element.offsetWidth);
      const below = event.clientY - box.top + GAP;
      const top = below + element.offsetHeight > box.height ? below - 2 * GAP - element.offsetHeight : below;
      Object.assign(element.style, { left: `${Math.max(0, left)}px`, top: `${top}px` });
    }

    hide() {
      this.element.hidden = true;
    }
  }

  Object.assign(Playground, { Popup });
})();
