/** Draws every fragment of a page from the JSON that it holds. */
import type { Drawing } from "./graph-view/drawing";
import { GraphView } from "./graph-view/view";

interface Fragment {
  drawing: Drawing;
  colour_by: string | null;
  size_by: string | null;
}

for (const host of document.querySelectorAll<HTMLElement & { view?: GraphView }>(".penstock-graph")) {
  const data = host.querySelector('script[type="application/json"]')?.textContent;
  if (data) {
    const { drawing, colour_by, size_by } = JSON.parse(data) as Fragment;
    host.view = new GraphView(host, drawing, { colourBy: colour_by, sizeBy: size_by });
  }
}
