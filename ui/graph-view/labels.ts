/** Text on the canvas: below its node, with the ground's colour around it so that edges do not cross it out. */
import type { NodeHoverDrawingFunction, NodeLabelDrawingFunction } from "sigma/rendering";
import type { EdgeShape, NodeShape } from "./graph";
import type { Theme } from "./theme";

const LONGEST = 28;
const FONT = "system-ui, -apple-system, 'Segoe UI', sans-serif";

export function labelDrawer(theme: () => Theme): NodeLabelDrawingFunction<NodeShape, EdgeShape> {
  return (context, data, settings) => {
    if (!data.label) return;
    text(context, data, data.label, settings.labelSize, theme(), data["strong"] === true ? 600 : 450);
  };
}

export function hoverDrawer(theme: () => Theme): NodeHoverDrawingFunction<NodeShape, EdgeShape> {
  return (context, data, settings) => {
    context.beginPath();
    context.arc(data.x, data.y, data.size + 3, 0, Math.PI * 2);
    context.strokeStyle = theme().accent;
    context.lineWidth = 2;
    context.stroke();
    if (data.label) text(context, data, data.label, settings.labelSize + 1, theme(), 600);
  };
}

function text(
  context: CanvasRenderingContext2D,
  at: { x: number; y: number; size: number },
  label: string,
  size: number,
  theme: Theme,
  weight: number,
): void {
  const shown = label.length > LONGEST ? `${label.slice(0, LONGEST - 1)}…` : label;
  const y = at.y + at.size + size + 1;
  context.font = `${weight} ${size}px ${FONT}`;
  context.textAlign = "center";
  context.lineJoin = "round";
  context.lineWidth = 4;
  context.strokeStyle = theme.ground;
  context.strokeText(shown, at.x, y);
  context.fillStyle = theme.ink;
  context.fillText(shown, at.x, y);
  context.textAlign = "start";
}
