/** The frame around the stage: search, menus, buttons, legend, details, what was left out. */
import { button, element, menu } from "./elements";
import style from "./style.css";

export interface PanelEvents {
  search(text: string): void;
  chooseFound(): void;
  colourBy(property: string | null): void;
  sizeBy(property: string | null): void;
  zoom(factor: number): void;
  fit(): void;
  save(): void;
}

export interface Panel {
  root: HTMLElement;
  stage: HTMLElement;
  search: HTMLInputElement;
  found: HTMLElement;
  colours: HTMLSelectElement;
  sizes: HTMLSelectElement;
  legend: HTMLElement;
  details: HTMLElement;
  status: HTMLElement;
  notice: HTMLElement;
  hint: HTMLElement;
  empty: HTMLElement;
}

export function buildPanel(host: HTMLElement, events: PanelEvents): Panel {
  const shadow = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(style);
  shadow.adoptedStyleSheets = [sheet];

  const search = element("input", { type: "search", placeholder: "Search", "aria-label": "Search nodes" });
  search.addEventListener("input", () => events.search(search.value));
  search.addEventListener("keydown", (event) => event.key === "Enter" && events.chooseFound());
  const panel: Panel = {
    root: element("section", { class: "view", "aria-label": "Graph" }),
    stage: element("div", { class: "stage", role: "img", "aria-label": "Graph" }),
    search,
    found: element("span", { class: "found", role: "status" }),
    colours: menu("Colour by", events.colourBy),
    sizes: menu("Size by", events.sizeBy),
    legend: element("div", { class: "legend card" }),
    details: element("aside", { class: "details card", "aria-label": "Selection", hidden: "" }),
    status: element("div", { class: "status", role: "status" }),
    notice: element("div", { class: "notice card", role: "alert", hidden: "" }),
    hint: element("div", { class: "hint card", hidden: "" }, "Hold Ctrl, or click into the drawing, to zoom"),
    empty: emptyState(),
  };
  const bar = element(
    "div",
    { class: "bar" },
    search,
    panel.found,
    element("span", { class: "gap" }),
    element("label", {}, "Colour", panel.colours),
    element("label", {}, "Size", panel.sizes),
    button("+", "Zoom in", () => events.zoom(1.5)),
    button("−", "Zoom out", () => events.zoom(1 / 1.5)),
    button("Fit", "Show everything", events.fit),
    button("PNG", "Save as a picture", events.save),
  );
  const { stage, empty, legend, details, notice, hint } = panel;
  panel.root.append(bar, element("div", { class: "body" }, stage, empty, legend, details, notice, hint), panel.status);
  shadow.replaceChildren(panel.root);
  return panel;
}

function emptyState(): HTMLElement {
  return element(
    "div",
    { class: "empty", hidden: "" },
    element("strong", {}, "There is nothing to draw"),
    element("span", {}, "A query draws what it returns as nodes and edges:"),
    element("code", {}, "MATCH (a)-[r]->(b) RETURN a, r, b LIMIT 50"),
  );
}
