/**
 * Names on a layer of their own: the weightiest first, and none over another. Each stands below its node, with the
 * ground's colour around it, so that edges do not cross it out.
 */
import type Sigma from "sigma";
import type { NodeHoverDrawingFunction } from "sigma/rendering";
import type { EdgeShape, NodeShape, ViewGraph } from "./graph";
import type { Theme } from "./theme";

export const LABELS = "names";
const LONGEST = 28;
const MOST = 250;
const SIZE = 12;
const FONT = "system-ui, -apple-system, 'Segoe UI', sans-serif";

interface Name {
  text: string;
  x: number;
  y: number;
  size: number;
  strong: boolean;
}

interface Box {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

export function drawLabels(sigma: Sigma<NodeShape, EdgeShape>, graph: ViewGraph, theme: Theme): void {
  const context = sigma.getCanvases()[LABELS]?.getContext("2d");
  if (!context) return;
  const { width, height } = sigma.getDimensions();
  context.clearRect(0, 0, width, height);
  const placed: Box[] = [];
  for (const name of visibleNames(sigma, graph, width, height)) {
    const box = boxOf(context, name);
    if (!name.strong && placed.some((other) => overlap(box, other))) continue;
    placed.push(box);
    write(context, name, theme);
    if (placed.length >= MOST) return;
  }
}

export function hoverDrawer(theme: () => Theme): NodeHoverDrawingFunction<NodeShape, EdgeShape> {
  return (context, { x, y, size, label }) => {
    context.beginPath();
    context.arc(x, y, size + 3, 0, Math.PI * 2);
    context.strokeStyle = theme().accent;
    context.lineWidth = 2;
    context.stroke();
    if (label) write(context, { text: shortened(label), x, y, size, strong: true }, theme());
  };
}

function visibleNames(sigma: Sigma<NodeShape, EdgeShape>, graph: ViewGraph, width: number, height: number): Name[] {
  const names: Name[] = [];
  graph.forEachNode((id) => {
    const shown = sigma.getNodeDisplayData(id);
    if (shown === undefined || !shown.label) return;
    const { x, y } = sigma.framedGraphToViewport(shown);
    if (x < 0 || y < 0 || x > width || y > height) return;
    names.push({ text: shortened(shown.label), x, y, size: sigma.scaleSize(shown.size), strong: shown.forceLabel });
  });
  return names.sort((a, b) => Number(b.strong) - Number(a.strong) || b.size - a.size);
}

function shortened(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text;
}

function boxOf(context: CanvasRenderingContext2D, name: Name): Box {
  context.font = fontOf(name);
  const half = context.measureText(name.text).width / 2 + 2;
  const top = name.y + name.size;
  return { left: name.x - half, right: name.x + half, top, bottom: top + SIZE + 3 };
}

function overlap(a: Box, b: Box): boolean {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

function write(context: CanvasRenderingContext2D, name: Name, theme: Theme): void {
  const y = name.y + name.size + SIZE + 1;
  context.font = fontOf(name);
  context.textAlign = "center";
  context.lineJoin = "round";
  context.lineWidth = 3.5;
  context.strokeStyle = theme.ground;
  context.strokeText(name.text, name.x, y);
  context.fillStyle = theme.ink;
  context.fillText(name.text, name.x, y);
  context.textAlign = "start";
}

function fontOf(name: Name): string {
  return `${name.strong ? 600 : 450} ${SIZE}px ${FONT}`;
}
