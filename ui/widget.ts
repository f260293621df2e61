/** The view as a notebook's widget: traits in both directions, an expansion as a message. See `penstock/widget/view.py`. */
import type { AnyModel, Render } from "@anywidget/types";
import type { Drawing } from "./graph-view/drawing";
import { GraphView } from "./graph-view/view";

interface Traits {
  data: Drawing;
  colour_by: string | null;
  size_by: string | null;
  search: string;
  selection: string[];
  expandable: boolean;
  height: number;
}

type Message = { kind: "notice"; text: string };

const render: Render<Traits> = ({ model, el }) => {
  const host = document.createElement("div") as HTMLDivElement & { view?: GraphView };
  host.className = "penstock-graph";
  host.style.height = `${model.get("height")}px`;
  el.append(host);
  const view = new GraphView(host, model.get("data"), options(model), {
    selected: (ids) => save(model, "selection", ids),
    searched: (text) => save(model, "search", text),
    colouredBy: (property) => save(model, "colour_by", property),
    sizedBy: (property) => save(model, "size_by", property),
    ...(model.get("expandable") ? { expand: (id) => model.send({ kind: "expand", id }) } : {}),
  });
  host.view = view;
  return follow(model, view);
};

function options(model: AnyModel<Traits>): ConstructorParameters<typeof GraphView>[2] {
  return {
    colourBy: model.get("colour_by"),
    sizeBy: model.get("size_by"),
    search: model.get("search"),
    selection: model.get("selection"),
  };
}

function save<K extends keyof Traits>(model: AnyModel<Traits>, name: K, value: Traits[K]): void {
  model.set(name, value);
  model.save_changes();
}

/** What Python changes, until the view is taken away. */
function follow(model: AnyModel<Traits>, view: GraphView): () => void {
  const changes: [string, (message: Message) => void][] = [
    ["change:data", () => view.setDrawing(model.get("data"))],
    ["change:colour_by", () => view.setColourBy(model.get("colour_by"))],
    ["change:size_by", () => view.setSizeBy(model.get("size_by"))],
    ["change:search", () => view.setSearch(model.get("search"))],
    ["change:selection", () => view.setSelection(model.get("selection"))],
    ["msg:custom", (message) => message.kind === "notice" && view.notice(message.text)],
  ];
  for (const [name, change] of changes) model.on(name, change);
  return () => {
    for (const [name, change] of changes) model.off(name, change);
    view.destroy();
  };
}

export default { render };
