declare module "*.css" {
  const text: string;
  export default text;
}

// ForceAtlas2's inner step: with it the layout keeps its matrices from one frame to the next.
declare module "graphology-layout-forceatlas2/iterate.js" {
  import type { ForceAtlas2Settings } from "graphology-layout-forceatlas2";
  export default function iterate(settings: ForceAtlas2Settings, nodes: Float32Array, edges: Float32Array): void;
}

declare module "graphology-layout-forceatlas2/helpers.js" {
  import type { AbstractGraph, Attributes } from "graphology-types";
  export function graphToByteArrays<N extends Attributes, E extends Attributes>(
    graph: AbstractGraph<N, E>,
    weight: (edge: string, attributes: E) => number,
  ): { nodes: Float32Array; edges: Float32Array };
}
