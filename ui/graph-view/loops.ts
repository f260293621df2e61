/** Edges from a node to itself, which the renderer of edges cannot draw: small circles above the node. */
import type Sigma from "sigma";
import type { EdgeShape, NodeShape, ViewGraph } from "./graph";

export const LOOPS = "loops";

export function drawLoops(sigma: Sigma<NodeShape, EdgeShape>, graph: ViewGraph, colourOf: (edge: string) => string): void {
  const context = sigma.getCanvases()[LOOPS]?.getContext("2d");
  if (!context) return;
  const { width, height } = sigma.getDimensions();
  context.clearRect(0, 0, width, height);
  graph.forEachEdge((id, shape, source) => {
    const node = shape.type === "loop" ? sigma.getNodeDisplayData(source) : undefined;
    if (node === undefined) return;
    const { x, y } = sigma.framedGraphToViewport(node);
    const size = sigma.scaleSize(node.size);
    circle(context, x, y - size, size * (0.9 + 0.45 * shape.curvature), colourOf(id));
  });
}

function circle(context: CanvasRenderingContext2D, x: number, y: number, radius: number, colour: string): void {
  context.strokeStyle = context.fillStyle = colour;
  context.lineWidth = 1.4;
  context.beginPath();
  context.arc(x, y - radius * 0.6, radius, 0, Math.PI * 2);
  context.stroke();
  const side = radius * 0.8;
  context.beginPath();
  context.moveTo(x + side, y);
  context.lineTo(x + side + 4.5, y - 6);
  context.lineTo(x + side - 3, y - 6);
  context.fill();
}
