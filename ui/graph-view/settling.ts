/**
 * The layout, a slice of each frame, so that the page answers while it settles and no worker is needed: a strict
 * content policy would forbid one. A burst before the first frame makes the first picture a good one.
 */
import type { ForceAtlas2Settings } from "graphology-layout-forceatlas2";
import { inferSettings } from "graphology-layout-forceatlas2";
import { assignLayoutChanges, graphToByteArrays } from "graphology-layout-forceatlas2/helpers.js";
import iterate from "graphology-layout-forceatlas2/iterate.js";
import type { ViewGraph } from "./graph";

const BURST_MS = 120;
const LEAST_MS = 8;
const MOST_MS = 100;
const PATIENCE_MS = 8000;
const CROWD = 400;

export class Settling {
  private frame = 0;
  private left = 0;

  constructor(
    private readonly graph: ViewGraph,
    private readonly settled: () => void,
  ) {}

  start(): void {
    this.stop();
    if (this.graph.order < 2) return this.settled();
    const settings = settingsFor(this.graph.order);
    const { nodes, edges } = graphToByteArrays(this.graph, (_, shape) => shape.weight);
    this.left = this.graph.order > CROWD ? 350 : 700;
    const end = performance.now() + PATIENCE_MS;
    let rested = 0;
    const run = (milliseconds: number): void => {
      const until = performance.now() + milliseconds;
      do {
        iterate(settings, nodes, edges);
        this.left -= 1;
      } while (this.left > 0 && performance.now() < until);
      assignLayoutChanges(this.graph, nodes, null);
    };
    // As much time for the layout as the last picture took: where drawing is slow there are fewer pictures.
    const step = (): void => {
      run(Math.min(MOST_MS, Math.max(LEAST_MS, performance.now() - rested)));
      next();
    };
    const next = (): void => {
      rested = performance.now();
      if (this.left > 0 && rested < end) this.frame = requestAnimationFrame(step);
      else this.settled();
    };
    run(BURST_MS);
    next();
  }

  stop(): void {
    cancelAnimationFrame(this.frame);
    this.left = 0;
  }
}

function settingsFor(order: number): ForceAtlas2Settings {
  return {
    ...inferSettings(order),
    barnesHutOptimize: order > CROWD,
    gravity: 0.12,
    scalingRatio: 14,
    strongGravityMode: true,
    outboundAttractionDistribution: false,
    edgeWeightInfluence: 1,
    adjustSizes: false,
    linLogMode: false,
    barnesHutTheta: 0.6,
  };
}
