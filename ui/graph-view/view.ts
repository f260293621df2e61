/** A drawing that one can search, colour, size, drag, zoom, select in and expand. The console and the notebook share it. */
import type { Drawing } from "./drawing";
import { numbersOf, propertyNames } from "./drawing";
import { renderDetails } from "./details";
import { fillMenu } from "./elements";
import type { ViewGraph } from "./graph";
import { bring, emptyGraph } from "./graph";
import { renderLegend } from "./legend";
import type { Panel } from "./panel";
import { buildPanel } from "./panel";
import { colourScale, sizeScale } from "./scales";
import { matching } from "./search";
import { Settling } from "./settling";
import { Stage } from "./stage";
import { currentTheme, watchTheme } from "./theme";
import { guardWheel } from "./wheel";

export interface ViewOptions {
  colourBy?: string | null;
  sizeBy?: string | null;
  search?: string;
  selection?: string[];
}

/** What the reader did; each is optional, and without `expand` nothing offers to. */
export interface ViewEvents {
  selected?(ids: string[]): void;
  searched?(text: string): void;
  colouredBy?(property: string | null): void;
  sizedBy?(property: string | null): void;
  expand?(id: string): void;
}

export class GraphView {
  private readonly graph: ViewGraph = emptyGraph();
  private readonly panel: Panel;
  private readonly stage: Stage;
  private readonly settling: Settling;
  private readonly ended = new AbortController();
  private colourBy: string | null;
  private sizeBy: string | null;
  private text: string;
  private selection: string[];

  constructor(
    private readonly host: HTMLElement,
    private drawing: Drawing,
    options: ViewOptions = {},
    private readonly events: ViewEvents = {},
  ) {
    this.colourBy = options.colourBy ?? null;
    this.sizeBy = options.sizeBy ?? null;
    this.text = options.search ?? "";
    this.selection = options.selection ?? [];
    this.panel = this.buildPanel();
    this.stage = this.buildStage();
    this.settling = new Settling(this.graph, () => this.stage.box, () => this.rest());
    this.watch();
    this.setDrawing(drawing);
  }

  setDrawing(drawing: Drawing): void {
    this.drawing = drawing;
    const changed = bring(this.graph, drawing);
    this.selection = this.selection.filter((id) => this.graph.hasNode(id));
    this.paint();
    if (changed) this.settle();
    else this.rest();
  }

  setColourBy(property: string | null): void {
    this.colourBy = property;
    this.paint();
  }

  setSizeBy(property: string | null): void {
    this.sizeBy = property;
    this.paint();
  }

  setSearch(text: string): void {
    this.text = text;
    if (this.panel.search.value !== text) this.panel.search.value = text;
    this.stage.found = matching(this.drawing.nodes, text);
    this.panel.found.textContent = this.stage.found === null ? "" : `${this.stage.found.size.toLocaleString("en")} found`;
    this.stage.redraw();
  }

  setSelection(ids: string[]): void {
    this.choose(ids.filter((id) => this.graph.hasNode(id)), null);
  }

  notice(text: string): void {
    this.panel.notice.textContent = text;
    this.panel.notice.hidden = text === "";
  }

  /** Where a node is, in pixels of the window; null when it is not drawn. */
  positionOf(id: string): { x: number; y: number } | null {
    const at = this.stage.positionOf(id);
    const box = this.panel.stage.getBoundingClientRect();
    return at === null ? null : { x: box.left + at.x, y: box.top + at.y };
  }

  get zoomRatio(): number {
    return this.stage.zoomRatio;
  }

  destroy(): void {
    this.ended.abort();
    this.settling.stop();
    this.stage.kill();
    this.host.shadowRoot?.replaceChildren();
  }

  private buildPanel(): Panel {
    return buildPanel(this.host, {
      search: (text) => {
        this.setSearch(text);
        this.events.searched?.(text);
      },
      chooseFound: () => this.chooseFound(),
      colourBy: (property) => {
        this.setColourBy(property);
        this.events.colouredBy?.(property);
      },
      sizeBy: (property) => {
        this.setSizeBy(property);
        this.events.sizedBy?.(property);
      },
      zoom: (factor) => this.stage.zoom(factor),
      fit: () => this.stage.fit(),
      save: () => this.save(),
    });
  }

  private buildStage(): Stage {
    return new Stage(this.graph, this.panel.stage, currentTheme(this.host), {
      nodeClicked: (id, more) => this.select(more ? toggled(this.selection, id) : [id]),
      edgeClicked: (id) => this.choose(this.selection, id),
      nodeOpened: (id) => this.expand(id),
      groundClicked: () => this.select([]),
      nodeTaken: () => this.rest(),
    });
  }

  private watch(): void {
    const { signal } = this.ended;
    const theme = (): void => {
      const found = currentTheme(this.host);
      this.panel.root.classList.toggle("dark", found.dark);
      this.stage.setTheme(found);
    };
    theme();
    watchTheme(this.host, theme, signal);
    guardWheel(this.panel.stage, this.panel.hint, signal);
    const sizes = new ResizeObserver(() => this.stage.resize());
    sizes.observe(this.panel.stage);
    signal.addEventListener("abort", () => sizes.disconnect());
    const pressed = (event: KeyboardEvent): void => {
      if (event.key === "Escape") this.select([]);
      event.stopPropagation(); // a notebook has commands on single letters
    };
    this.panel.root.addEventListener("keydown", pressed, { signal });
  }

  private settle(): void {
    this.host.dataset["layout"] = "settling";
    this.settling.start();
  }

  private rest(): void {
    this.settling.stop();
    this.host.dataset["layout"] = "settled";
    this.stage.redraw();
  }

  private paint(): void {
    const colours = colourScale(this.drawing, this.colourBy);
    const sizeOf = sizeScale(this.drawing, this.sizeBy, (id) => this.graph.degree(id));
    for (const node of this.drawing.nodes) {
      this.graph.mergeNodeAttributes(node.id, { color: colours.colourOf(node), size: sizeOf(node) });
    }
    const names = propertyNames(this.drawing);
    fillMenu(this.panel.colours, "label", names, this.colourBy);
    fillMenu(this.panel.sizes, "connections", names.filter((name) => numbersOf(this.drawing, name).length > 0), this.sizeBy);
    renderLegend(this.panel.legend, colours.legend);
    this.panel.legend.hidden = this.panel.empty.hidden = false;
    this.panel[this.drawing.nodes.length === 0 ? "legend" : "empty"].hidden = true;
    this.panel.status.textContent = summary(this.drawing);
    this.panel.stage.setAttribute("aria-label", `Graph: ${summary(this.drawing)}`);
    this.setSearch(this.text);
    this.choose(this.selection, null);
  }

  private select(ids: string[]): void {
    this.notice("");
    this.choose(ids, null);
    this.events.selected?.(this.selection);
  }

  private choose(ids: string[], edge: string | null): void {
    this.selection = ids;
    this.stage.selected = new Set(ids);
    this.stage.chosenEdge = edge;
    const { expand } = this.events;
    renderDetails(this.panel.details, this.graph, ids, edge, {
      choose: (id) => this.select([id]),
      close: () => this.select([]),
      expand: expand === undefined ? null : (id) => this.expand(id),
    });
    this.stage.redraw();
  }

  private chooseFound(): void {
    const found = [...(this.stage.found ?? [])];
    if (found.length === 0) return;
    this.select(found);
    this.stage.show(found);
  }

  private expand(id: string): void {
    if (this.events.expand === undefined) return;
    this.notice("");
    this.events.expand(id);
  }

  private save(): void {
    const link = document.createElement("a");
    link.href = this.stage.picture().toDataURL("image/png");
    link.download = "graph.png";
    link.click();
  }
}

function toggled(ids: string[], id: string): string[] {
  return ids.includes(id) ? ids.filter((each) => each !== id) : [...ids, id];
}

function summary({ nodes, edges, left_out: left }: Drawing): string {
  const drawn = `${count(nodes.length, "node")}, ${count(edges.length, "edge")}`;
  const missing = [left.nodes > 0 && count(left.nodes, "node"), left.edges > 0 && count(left.edges, "edge")].filter(Boolean);
  return missing.length > 0 ? `${drawn} drawn; left out: ${missing.join(" and ")}` : drawn;
}

function count(number: number, noun: string): string {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}
