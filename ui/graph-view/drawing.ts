/** A drawing as Python writes it; see `penstock/widget/drawing.py`. */
export type Scalar = string | number | boolean | null;
export type Properties = Record<string, Scalar>;

export interface DrawnNode {
  id: string;
  label: string;
  caption: string;
  properties: Properties;
}

export interface DrawnEdge {
  id: string;
  type: string;
  source: string;
  target: string;
  properties: Properties;
}

export interface Drawing {
  nodes: DrawnNode[];
  edges: DrawnEdge[];
  left_out: { nodes: number; edges: number };
}

/** The properties that some node has, by name. */
export function propertyNames(drawing: Drawing): string[] {
  const names = new Set<string>();
  for (const node of drawing.nodes) for (const name of Object.keys(node.properties)) names.add(name);
  return [...names].sort();
}

export function numbersOf(drawing: Drawing, name: string): number[] {
  return drawing.nodes.map((node) => node.properties[name]).filter((value) => typeof value === "number");
}
