/** From a node to its colour and size, and what the legend says of it. */
import type { Drawing, DrawnNode } from "./drawing";
import { numbersOf } from "./drawing";

export const PALETTE = [
  "#3b7dd8",
  "#e8743b",
  "#19a979",
  "#c04fb0",
  "#e0a818",
  "#6c5ce7",
  "#13a4b4",
  "#d8433b",
  "#8a6d4b",
  "#5f9e2f",
];
export const OTHER = "#98a2b3";
const RAMP = ["#4158c7", "#2b97c6", "#3bb98a", "#e5c032", "#e8632b"];
const MOST_CATEGORIES = PALETTE.length;

export type Legend =
  | { kind: "categories"; title: string; entries: { name: string; colour: string; count: number }[] }
  | { kind: "ramp"; title: string; low: number; high: number; colours: string[]; missing: number };

export interface ColourScale {
  colourOf(node: DrawnNode): string;
  legend: Legend;
}

/** By label when `property` is null; numbers that vary become a ramp, all else categories. */
export function colourScale(drawing: Drawing, property: string | null): ColourScale {
  if (property === null) return categories(drawing, "Label", (node) => node.label || "(no label)");
  const numbers = numbersOf(drawing, property);
  const given = drawing.nodes.filter((node) => (node.properties[property] ?? null) !== null).length;
  const distinct = new Set(numbers);
  const continuous = distinct.size > MOST_CATEGORIES || (distinct.size > 1 && numbers.some((n) => !Number.isInteger(n)));
  if (given > 0 && numbers.length === given && continuous) return ramp(drawing, property, numbers);
  return categories(drawing, property, (node) => String(node.properties[property] ?? "(none)"));
}

function categories(drawing: Drawing, title: string, nameOf: (node: DrawnNode) => string): ColourScale {
  const counts = new Map<string, number>();
  for (const node of drawing.nodes) counts.set(nameOf(node), (counts.get(nameOf(node)) ?? 0) + 1);
  const names = [...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)).map(([name]) => name);
  const shown = names.slice(0, MOST_CATEGORIES);
  const colours = new Map(shown.map((name, place) => [name, PALETTE[place] ?? OTHER]));
  const entries = shown.map((name) => ({ name, colour: colours.get(name) ?? OTHER, count: counts.get(name) ?? 0 }));
  const rest = names.slice(MOST_CATEGORIES);
  if (rest.length > 0) {
    const count = rest.reduce((sum, name) => sum + (counts.get(name) ?? 0), 0);
    entries.push({ name: `${rest.length} others`, colour: OTHER, count });
  }
  return { colourOf: (node) => colours.get(nameOf(node)) ?? OTHER, legend: { kind: "categories", title, entries } };
}

function ramp(drawing: Drawing, property: string, numbers: number[]): ColourScale {
  const [low, high] = extent(numbers);
  return {
    colourOf: (node) => {
      const value = node.properties[property];
      return typeof value === "number" ? rampColour((value - low) / (high - low || 1)) : OTHER;
    },
    legend: { kind: "ramp", title: property, low, high, colours: RAMP, missing: drawing.nodes.length - numbers.length },
  };
}

function rampColour(share: number): string {
  const place = Math.min(Math.max(share, 0), 1) * (RAMP.length - 1);
  const step = Math.min(Math.floor(place), RAMP.length - 2);
  const [from, to] = [channels(RAMP[step] ?? OTHER), channels(RAMP[step + 1] ?? OTHER)];
  const mixed = from.map((value, i) => Math.round(value + ((to[i] ?? value) - value) * (place - step)));
  return `#${mixed.map((value) => value.toString(16).padStart(2, "0")).join("")}`;
}

function channels(hex: string): number[] {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

/** By the number of connections when `property` is null. Areas, not radii, follow the value. */
export function sizeScale(
  drawing: Drawing,
  property: string | null,
  degreeOf: (id: string) => number,
): (node: DrawnNode) => number {
  const base = Math.max(4, 13 - Math.log2(drawing.nodes.length + 1));
  const valueOf = (node: DrawnNode): number | null => {
    const value = property === null ? degreeOf(node.id) : node.properties[property];
    return typeof value === "number" ? value : null;
  };
  const [low, high] = extent(drawing.nodes.map(valueOf).filter((value) => value !== null));
  const span = property === null ? 1.1 : 2.2;
  return (node) => {
    const value = valueOf(node);
    if (value === null || high === low) return base;
    return base * (0.8 + span * Math.sqrt((value - low) / (high - low)));
  };
}

function extent(values: number[]): [number, number] {
  return values.reduce<[number, number]>(
    ([low, high], value) => [Math.min(low, value), Math.max(high, value)],
    values.length ? [Infinity, -Infinity] : [0, 0],
  );
}
