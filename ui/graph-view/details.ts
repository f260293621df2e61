/** What is known of the chosen nodes or edge, and the way to their neighbors without a mouse. */
import { button, element, swatch } from "./elements";
import type { Properties, Scalar } from "./drawing";
import type { ViewGraph } from "./graph";

const MOST_LISTED = 30;

export interface DetailsEvents {
  choose(id: string): void;
  close(): void;
  expand: ((id: string) => void) | null;
}

export function renderDetails(
  into: HTMLElement,
  graph: ViewGraph,
  nodes: string[],
  edge: string | null,
  events: DetailsEvents,
): void {
  const [only] = nodes;
  into.hidden = only === undefined && edge === null;
  if (into.hidden) return into.replaceChildren();
  const close = button("×", "Close", events.close);
  close.className = "close";
  const parts = edge !== null ? ofEdge(graph, edge, events) : nodes.length === 1 && only !== undefined ? ofNode(graph, only, events) : ofMany(graph, nodes, events);
  into.replaceChildren(close, ...parts);
}

function ofNode(graph: ViewGraph, id: string, events: DetailsEvents): HTMLElement[] {
  const { drawn, color } = graph.getNodeAttributes(id);
  const parts: HTMLElement[] = [element("h2", {}, drawn.caption), element("p", { class: "quiet" }, swatch(color), drawn.label, " · ", id)];
  const { expand } = events;
  if (expand !== null) {
    const more = button("Expand neighbors", "Expand neighbors", () => expand(id));
    more.className = "primary";
    parts.push(more);
  }
  return [...parts, properties(drawn.properties), neighbors(graph, id, events)];
}

function ofEdge(graph: ViewGraph, id: string, events: DetailsEvents): HTMLElement[] {
  const { drawn } = graph.getEdgeAttributes(id);
  const ends = element("ul", {}, entry(graph, drawn.source, "from", events), entry(graph, drawn.target, "to", events));
  return [element("h2", {}, drawn.type), ends, properties(drawn.properties)];
}

function ofMany(graph: ViewGraph, ids: string[], events: DetailsEvents): HTMLElement[] {
  return [element("h2", {}, `${ids.length.toLocaleString("en")} nodes selected`), list(graph, ids.map((id) => [id, ""]), events)];
}

function neighbors(graph: ViewGraph, id: string, events: DetailsEvents): HTMLElement {
  const counts = new Map<string, [string, string, number]>();
  graph.forEachEdge(id, (_, { drawn }, source, target) => {
    const [other, how] = source === id ? [target, `→ ${drawn.type}`] : [source, `← ${drawn.type}`];
    const key = JSON.stringify([other, how]);
    counts.set(key, [other, how, (counts.get(key)?.[2] ?? 0) + 1]);
  });
  const found = [...counts.values()].map(([other, how, times]): [string, string] => [other, times > 1 ? `${how} × ${times}` : how]);
  return list(graph, found, events);
}

function list(graph: ViewGraph, found: [string, string][], events: DetailsEvents): HTMLElement {
  const shown = found.slice(0, MOST_LISTED).map(([id, how]) => entry(graph, id, how, events));
  if (found.length > MOST_LISTED) shown.push(element("li", { class: "quiet" }, `and ${(found.length - MOST_LISTED).toLocaleString("en")} more`));
  return element("ul", {}, ...shown);
}

function entry(graph: ViewGraph, id: string, how: string, events: DetailsEvents): HTMLElement {
  const { drawn, color } = graph.getNodeAttributes(id);
  const go = element("button", { type: "button" }, swatch(color), drawn.caption);
  go.addEventListener("click", () => events.choose(id));
  return element("li", {}, ...(how ? [element("span", { class: "quiet" }, how)] : []), go);
}

function properties(found: Properties): HTMLElement {
  const rows = Object.entries(found).map(([name, value]) =>
    element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, text(value))),
  );
  return element("table", {}, ...rows);
}

function text(value: Scalar): string {
  if (value === null) return "–";
  return typeof value === "number" && !Number.isInteger(value) ? String(Number(value.toPrecision(6))) : String(value);
}
