/** The canvas: draws the graph, fades what is not in focus, moves nodes under the mouse. */
import { createEdgeCurveProgram } from "@sigma/edge-curve";
import { createNodeBorderProgram } from "@sigma/node-border";
import Sigma from "sigma";
import { createEdgeArrowProgram } from "sigma/rendering";
import type { EdgeShape, NodeShape, ViewGraph } from "./graph";
import { drawLabels, hoverDrawer, LABELS } from "./labels";
import { drawLoops, LOOPS } from "./loops";
import type { Theme } from "./theme";

const ARROW = { lengthToThicknessRatio: 4.5, widenessToThicknessRatio: 3.4 };
const FEW_EDGES = 20;
const READABLE = 8;
const CLOSE = 0.45;
const GLIDE_MS = 250;

export interface StageEvents {
  nodeClicked(id: string, more: boolean): void;
  edgeClicked(id: string): void;
  nodeOpened(id: string): void;
  groundClicked(): void;
  nodeTaken(): void;
}

export class Stage {
  selected: ReadonlySet<string> = new Set();
  found: ReadonlySet<string> | null = null;
  chosenEdge: string | null = null;
  private hovered: string | null = null;
  private hoveredEdge: string | null = null;
  private near: ReadonlySet<string> = new Set();
  private readonly sigma: Sigma<NodeShape, EdgeShape>;

  constructor(
    private readonly graph: ViewGraph,
    element: HTMLElement,
    private theme: Theme,
    events: StageEvents,
  ) {
    this.sigma = new Sigma<NodeShape, EdgeShape>(graph, element, {
      allowInvalidContainer: true,
      defaultEdgeType: "straight",
      defaultNodeType: "ringed",
      edgeProgramClasses: { straight: straight(), curved: curved(), loop: straight() },
      nodeProgramClasses: { ringed: ringed() },
      defaultDrawNodeHover: hoverDrawer(() => this.theme),
      edgeReducer: (id, shape) => this.edgeLook(id, shape),
      nodeReducer: (id, shape) => this.nodeLook(id, shape),
      enableEdgeEvents: true,
      edgeLabelSize: 10,
      maxCameraRatio: 4,
      minCameraRatio: 0.02,
      minEdgeThickness: 1.2,
      renderEdgeLabels: true,
      renderLabels: false,
      stagePadding: 48,
      zIndex: true,
    });
    const [below, above] = [{ beforeLayer: "nodes", style: {} }, { beforeLayer: "hovers", style: {} }];
    this.sigma.createCanvasContext(LOOPS, below).createCanvasContext(LABELS, above);
    this.sigma.on("afterRender", () => {
      drawLoops(this.sigma, graph, (id) => this.edgeColour(id));
      drawLabels(this.sigma, graph, this.theme);
    });
    this.listen(events);
    this.setTheme(theme);
  }

  setTheme(theme: Theme): void {
    this.theme = theme;
    this.sigma.setSetting("defaultEdgeColor", theme.edge);
    this.sigma.setSetting("edgeLabelColor", { color: theme.ink });
    this.redraw();
  }

  redraw(): void {
    this.sigma.refresh({ skipIndexation: false });
  }

  resize(): void {
    this.sigma.resize(true);
    this.redraw();
  }

  get box(): { width: number; height: number } {
    return this.sigma.getDimensions();
  }

  /** Where a node is, in pixels of the stage. */
  positionOf(id: string): { x: number; y: number } | null {
    const shown = this.sigma.getNodeDisplayData(id);
    return shown === undefined ? null : this.sigma.framedGraphToViewport(shown);
  }

  get zoomRatio(): number {
    return this.sigma.getCamera().ratio;
  }

  zoom(factor: number): void {
    const camera = this.sigma.getCamera();
    void camera.animate({ ratio: camera.getBoundedRatio(camera.ratio / factor) }, { duration: GLIDE_MS });
  }

  fit(): void {
    this.sigma.setCustomBBox(null);
    void this.sigma.getCamera().animatedReset({ duration: GLIDE_MS });
    this.redraw();
  }

  /** Bring some nodes into the middle, near enough to read. */
  show(ids: Iterable<string>): void {
    const shown = [...ids].map((id) => this.sigma.getNodeDisplayData(id)).filter((data) => data !== undefined);
    if (shown.length === 0) return;
    const [xs, ys] = [shown.map((data) => data.x), shown.map((data) => data.y)];
    const [left, right, low, high] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const ratio = Math.min(1, Math.max(0.35, Math.max(right - left, high - low) * 1.4));
    const camera = this.sigma.getCamera();
    void camera.animate({ x: (left + right) / 2, y: (low + high) / 2, ratio }, { duration: GLIDE_MS });
  }

  /** All layers as one picture, on the ground's colour. */
  picture(): HTMLCanvasElement {
    this.sigma.refresh();
    const layers = [...this.sigma.getContainer().querySelectorAll("canvas")];
    const picture = document.createElement("canvas");
    picture.width = layers[0]?.width ?? 1;
    picture.height = layers[0]?.height ?? 1;
    const context = picture.getContext("2d");
    if (context === null) return picture;
    context.fillStyle = this.theme.ground;
    context.fillRect(0, 0, picture.width, picture.height);
    for (const layer of layers) context.drawImage(layer, 0, 0, picture.width, picture.height);
    return picture;
  }

  kill(): void {
    this.sigma.kill();
  }

  private listen(events: StageEvents): void {
    this.sigma.on("enterNode", ({ node }) => this.hover(node));
    this.sigma.on("leaveNode", () => this.hover(null));
    this.sigma.on("enterEdge", ({ edge }) => this.hoverEdge(edge));
    this.sigma.on("leaveEdge", () => this.hoverEdge(null));
    this.sigma.on("clickEdge", ({ edge }) => events.edgeClicked(edge));
    this.sigma.on("clickStage", () => events.groundClicked());
    this.listenForPresses(events);
  }

  private listenForPresses(events: StageEvents): void {
    let held: string | null = null;
    let moved = false;
    let last: string | null = null;
    const pressed = (node: string, { shiftKey, ctrlKey, metaKey }: MouseEvent | TouchEvent): void => {
      if (!moved) events.nodeClicked(node, shiftKey || ctrlKey || metaKey);
      last = moved ? null : node;
      moved = false;
    };
    this.sigma.on("downNode", ({ node }) => {
      [held, moved] = [node, false];
    });
    this.sigma.on("moveBody", ({ event, preventSigmaDefault }) => {
      if (held === null) return;
      if (!moved) {
        events.nodeTaken();
        this.sigma.setCustomBBox(this.sigma.getBBox());
        moved = true;
      }
      this.graph.mergeNodeAttributes(held, this.sigma.viewportToGraph(event));
      preventSigmaDefault();
      event.original.preventDefault();
    });
    const release = (): void => {
      held = null;
    };
    this.sigma.on("upNode", release);
    this.sigma.on("upStage", release);
    this.sigma.getMouseCaptor().on("mouseup", release);
    this.sigma.on("clickNode", ({ node, event }) => pressed(node, event.original));
    // Two quick clicks on two nodes are a double click to sigma, and to the reader they are not.
    this.sigma.on("doubleClickNode", ({ node, event, preventSigmaDefault }) => {
      preventSigmaDefault();
      if (node === last) events.nodeOpened(node);
      else pressed(node, event.original);
    });
  }

  private hover(id: string | null): void {
    this.hovered = id;
    this.near = id === null ? new Set() : new Set([id, ...this.graph.neighbors(id)]);
    this.sigma.getContainer().style.cursor = id === null ? "" : "pointer";
    this.redraw();
  }

  private hoverEdge(id: string | null): void {
    this.hoveredEdge = id;
    this.redraw();
  }

  private nodeLook(id: string, shape: NodeShape): Record<string, unknown> {
    const chosen = this.selected.has(id);
    const focus = this.found ?? (this.hovered === null ? null : this.near);
    const ring = { borderColor: chosen ? this.theme.accent : this.theme.ground, borderSize: chosen ? 3 : 1.5 };
    if (focus !== null && !focus.has(id) && !chosen) return { ...shape, ...ring, color: this.theme.faded, label: null };
    const size = shape.size + (chosen ? 2 : 0);
    return { ...shape, ...ring, size, forceLabel: chosen || this.found !== null, zIndex: chosen ? 2 : 1 };
  }

  private edgeLook(id: string, shape: EdgeShape): Record<string, unknown> {
    if (shape.type === "loop") return { ...shape, hidden: true };
    const lit = this.isLit(id);
    const named = this.isNamed(id) || this.graph.size <= FEW_EDGES || this.zoomRatio < CLOSE;
    const look = { ...shape, color: this.edgeColour(id), label: named ? shape.label : null };
    const size = lit ? shape.size * 1.5 : shape.size;
    return { ...look, size, forceLabel: named, zIndex: lit ? 2 : this.isFaded(id) ? 0 : 1 };
  }

  private edgeColour(id: string): string {
    if (this.isOne(id)) return this.theme.accent;
    return this.isFaded(id) ? this.theme.faded : this.theme.edge;
  }

  private isLit(id: string): boolean {
    const [source, target] = this.graph.extremities(id);
    return this.isOne(id) || source === this.hovered || target === this.hovered;
  }

  /** A node of many edges would be hidden by their names. */
  private isNamed(id: string): boolean {
    return this.isOne(id) || (this.isLit(id) && this.graph.degree(this.hovered) <= READABLE);
  }

  private isOne(id: string): boolean {
    return id === this.chosenEdge || id === this.hoveredEdge;
  }

  private isFaded(id: string): boolean {
    const [source, target] = this.graph.extremities(id);
    if (this.found !== null) return !(this.found.has(source) && this.found.has(target));
    return this.hovered !== null && source !== this.hovered && target !== this.hovered;
  }
}

function straight(): ReturnType<typeof createEdgeArrowProgram<NodeShape, EdgeShape>> {
  return createEdgeArrowProgram<NodeShape, EdgeShape>(ARROW);
}

function curved(): ReturnType<typeof createEdgeCurveProgram<NodeShape, EdgeShape>> {
  return createEdgeCurveProgram<NodeShape, EdgeShape>({ arrowHead: { extremity: "target", ...ARROW } });
}

function ringed(): ReturnType<typeof createNodeBorderProgram<NodeShape, EdgeShape>> {
  return createNodeBorderProgram<NodeShape, EdgeShape>({
    borders: [
      { size: { attribute: "borderSize", defaultValue: 1.5, mode: "pixels" }, color: { attribute: "borderColor" } },
      { size: { fill: true }, color: { attribute: "color" } },
    ],
  });
}
