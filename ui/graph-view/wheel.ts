const HINT_MS = 1500;

/** A page that scrolls keeps its wheel until the reader asks for zoom: with Ctrl, or by a click into the drawing. */
export function guardWheel(stage: HTMLElement, hint: HTMLElement, signal: AbortSignal): void {
  let entered = false;
  let timer = 0;
  stage.addEventListener("pointerdown", () => (entered = true), { capture: true, signal });
  stage.addEventListener("pointerleave", () => (entered = false), { signal });
  const refuse = (event: WheelEvent): void => {
    if (entered || event.ctrlKey || event.metaKey || !pageScrolls()) return;
    event.stopImmediatePropagation();
    hint.hidden = false;
    clearTimeout(timer);
    timer = window.setTimeout(() => (hint.hidden = true), HINT_MS);
  };
  stage.addEventListener("wheel", refuse, { capture: true, signal });
}

function pageScrolls(): boolean {
  const { scrollHeight, clientHeight } = document.documentElement;
  return scrollHeight > clientHeight + 1 || document.body.dataset["jpThemeLight"] !== undefined;
}
