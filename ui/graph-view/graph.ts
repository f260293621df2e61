/** The drawing as a graph with positions: what stays keeps its place, what is new begins near a neighbour. */
import { MultiDirectedGraph } from "graphology";
import type { Drawing, DrawnEdge, DrawnNode } from "./drawing";

export interface NodeShape {
  x: number;
  y: number;
  size: number;
  color: string;
  label: string;
  drawn: DrawnNode;
}

export interface EdgeShape {
  type: "straight" | "curved" | "loop";
  curvature: number;
  weight: number;
  label: string;
  size: number;
  drawn: DrawnEdge;
}

export type ViewGraph = MultiDirectedGraph<NodeShape, EdgeShape>;

const GOLDEN_ANGLE = Math.PI * (3 - Math.sqrt(5));
const WIDEST_BOW = 1.4;
const BOW = 0.26;
const CROWD = 400;

export function emptyGraph(): ViewGraph {
  return new MultiDirectedGraph<NodeShape, EdgeShape>();
}

/** True when a node or edge came or went, so that the layout has to settle anew. */
export function bring(graph: ViewGraph, drawing: Drawing): boolean {
  const gone = dropMissing(graph, drawing);
  const near = neighbors(drawing);
  let came = false;
  drawing.nodes.forEach((drawn, place) => {
    if (graph.hasNode(drawn.id)) {
      graph.mergeNodeAttributes(drawn.id, { drawn, label: drawn.caption });
      return;
    }
    graph.addNode(drawn.id, { ...begin(graph, near.get(drawn.id) ?? [], place), size: 5, color: "#888888", label: drawn.caption, drawn });
    came = true;
  });
  for (const drawn of drawing.edges) {
    if (graph.hasEdge(drawn.id)) {
      graph.setEdgeAttribute(drawn.id, "drawn", drawn);
      continue;
    }
    const shape: EdgeShape = { type: "straight", curvature: 0, weight: 1, label: drawn.type, size: drawing.edges.length > CROWD ? 1.1 : 1.9, drawn };
    graph.addDirectedEdgeWithKey(drawn.id, drawn.source, drawn.target, shape);
    came = true;
  }
  if (came || gone) bow(graph);
  return came || gone;
}

function dropMissing(graph: ViewGraph, drawing: Drawing): boolean {
  const nodes = new Set(drawing.nodes.map((node) => node.id));
  const edges = new Set(drawing.edges.map((edge) => edge.id));
  const goneEdges = graph.filterEdges((id) => !edges.has(id));
  const goneNodes = graph.filterNodes((id) => !nodes.has(id));
  goneEdges.forEach((id) => graph.dropEdge(id));
  goneNodes.forEach((id) => graph.dropNode(id));
  return goneEdges.length + goneNodes.length > 0;
}

function neighbors(drawing: Drawing): Map<string, string[]> {
  const near = new Map<string, string[]>(drawing.nodes.map((node) => [node.id, []]));
  for (const { source, target } of drawing.edges) {
    near.get(source)?.push(target);
    near.get(target)?.push(source);
  }
  return near;
}

/** Beside a neighbour that has its place already, else on a spiral: the same drawing always begins the same. */
function begin(graph: ViewGraph, near: string[], place: number): { x: number; y: number } {
  const angle = place * GOLDEN_ANGLE;
  const known = graph.order > 0 ? near.find((id) => graph.hasNode(id)) : undefined;
  const [x, y, reach] =
    known === undefined
      ? [0, 0, 10 * Math.sqrt(place + 1)]
      : [graph.getNodeAttribute(known, "x"), graph.getNodeAttribute(known, "y"), 8];
  return { x: x + reach * Math.cos(angle), y: y + reach * Math.sin(angle) };
}

/** Edges between the same two nodes bow apart, whichever way they point, and together pull like one. */
function bow(graph: ViewGraph): void {
  const pairs = new Map<string, string[]>();
  graph.forEachEdge((id, _, source, target) => {
    const pair = JSON.stringify(source < target ? [source, target] : [target, source]);
    pairs.set(pair, [...(pairs.get(pair) ?? []), id]);
  });
  for (const ids of pairs.values()) {
    const step = Math.min(BOW, WIDEST_BOW / Math.max(ids.length - 1, 1));
    ids.forEach((id, place) => {
      const [source, target] = graph.extremities(id);
      const bent = step * (place - (ids.length - 1) / 2) * (source < target ? 1 : -1);
      const type = source === target ? "loop" : bent === 0 ? "straight" : "curved";
      graph.mergeEdgeAttributes(id, { type, curvature: type === "loop" ? place : bent, weight: 1 / ids.length });
    });
  }
}
