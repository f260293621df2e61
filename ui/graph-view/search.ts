import type { DrawnNode } from "./drawing";

/** The nodes that have the words somewhere in caption, id, label or a property; null when nothing is sought. */
export function matching(nodes: DrawnNode[], text: string): Set<string> | null {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return null;
  return new Set(nodes.filter((node) => words.every((word) => textOf(node).includes(word))).map((node) => node.id));
}

function textOf({ id, caption, label, properties }: DrawnNode): string {
  return [id, caption, label, ...Object.values(properties)].join("\n").toLowerCase();
}
