import { element, swatch } from "./elements";
import type { Legend } from "./scales";

const LONGEST = 26;

export function renderLegend(into: HTMLElement, legend: Legend): void {
  const title = element("h2", {}, legend.title);
  into.replaceChildren(title, ...(legend.kind === "ramp" ? ramp(legend) : categories(legend)));
}

function categories(legend: Extract<Legend, { kind: "categories" }>): HTMLElement[] {
  return legend.entries.map(({ name, colour, count }) => {
    const shown = name.length > LONGEST ? `${name.slice(0, LONGEST - 1)}…` : name;
    return element("p", { title: name }, swatch(colour), shown, element("b", {}, count.toLocaleString("en")));
  });
}

function ramp(legend: Extract<Legend, { kind: "ramp" }>): HTMLElement[] {
  const bar = element("div", { class: "ramp" });
  bar.style.background = `linear-gradient(90deg, ${legend.colours.join(", ")})`;
  const ends = element("p", { class: "ends" }, element("span", {}, short(legend.low)), element("span", {}, short(legend.high)));
  const missing = element("p", { class: "quiet" }, `${legend.missing.toLocaleString("en")} without`);
  return legend.missing > 0 ? [bar, ends, missing] : [bar, ends];
}

function short(value: number): string {
  const size = Math.abs(value);
  if (size !== 0 && size < 1e-3) return value.toExponential(1);
  return value.toLocaleString("en", { notation: size >= 1e6 ? "compact" : "standard", maximumSignificantDigits: size >= 1000 ? 6 : 3 });
}
