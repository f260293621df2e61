/**
 * The layout, a slice of each frame, so that the page answers while it settles and no worker is needed: a strict
 * content policy would forbid one. A burst before the first frame makes the first picture a good one.
 */
import type { ForceAtlas2Settings } from "graphology-layout-forceatlas2";
import { inferSettings } from "graphology-layout-forceatlas2";
import { graphToByteArrays } from "graphology-layout-forceatlas2/helpers.js";
import iterate from "graphology-layout-forceatlas2/iterate.js";
import noverlap from "graphology-layout-noverlap";
import type { ViewGraph } from "./graph";

const BURST_MS = 120;
const LEAST_MS = 8;
const MOST_MS = 100;
const PATIENCE_MS = 8000;
const CROWD = 400;
const WIDEST = 1.7;
// What the layout keeps of each node in its matrix; the first two numbers are its place.
const NUMBERS_PER_NODE = 10;

export class Settling {
  private frame = 0;

  constructor(
    private readonly graph: ViewGraph,
    private readonly box: () => { width: number; height: number },
    private readonly settled: () => void,
  ) {}

  start(): void {
    this.stop();
    if (this.graph.order < 2) return this.settled();
    const settings = settingsFor(this.graph.order);
    const matrices = graphToByteArrays(this.graph, (_, shape) => shape.weight);
    const end = performance.now() + PATIENCE_MS;
    let left = this.graph.order > CROWD ? 350 : 700;
    let rested = 0;
    const run = (milliseconds: number): void => {
      const until = performance.now() + milliseconds;
      do {
        iterate(settings, matrices.nodes, matrices.edges);
        left -= 1;
      } while (left > 0 && performance.now() < until);
      this.place(matrices.nodes);
    };
    // As much time for the layout as the last picture took: where drawing is slow there are fewer pictures.
    const step = (): void => {
      run(Math.min(MOST_MS, Math.max(LEAST_MS, performance.now() - rested)));
      next();
    };
    const next = (): void => {
      rested = performance.now();
      if (left > 0 && rested < end) this.frame = requestAnimationFrame(step);
      else this.finish();
    };
    run(BURST_MS);
    next();
  }

  stop(): void {
    cancelAnimationFrame(this.frame);
  }

  /** Forces know no direction; a stage that is wider than high is filled by drawing wider. */
  private place(nodes: Float32Array): void {
    const { width, height } = this.box();
    const stretch = Math.min(WIDEST, Math.max(1, width / (height || 1)));
    let at = 0;
    this.graph.updateEachNodeAttributes(
      (_, shape) => {
        const [x, y] = [nodes[at] ?? 0, nodes[at + 1] ?? 0];
        at += NUMBERS_PER_NODE;
        return { ...shape, x: x * stretch, y };
      },
      { attributes: ["x", "y"] },
    );
  }

  /** At last no node over another, at the size that they have on this stage. */
  private finish(): void {
    const { width, height } = this.box();
    const xs = this.graph.mapNodes((_, shape) => shape.x);
    const ys = this.graph.mapNodes((_, shape) => shape.y);
    const unit = Math.max((Math.max(...xs) - Math.min(...xs)) / width, (Math.max(...ys) - Math.min(...ys)) / height);
    if (Number.isFinite(unit) && unit > 0) {
      noverlap.assign(this.graph, { maxIterations: 60, settings: { ratio: unit, margin: 5 * unit, expansion: 1.05 } });
    }
    this.settled();
  }
}

function settingsFor(order: number): ForceAtlas2Settings {
  return {
    ...inferSettings(order),
    adjustSizes: false,
    barnesHutOptimize: order > CROWD,
    barnesHutTheta: 0.6,
    edgeWeightInfluence: 1,
    gravity: 0.15,
    linLogMode: false,
    outboundAttractionDistribution: false,
    scalingRatio: 14,
    strongGravityMode: true,
  };
}
