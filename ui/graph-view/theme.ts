export interface Theme {
  dark: boolean;
  ground: string;
  ink: string;
  edge: string;
  faded: string;
  accent: string;
}

export const LIGHT: Theme = {
  dark: false,
  ground: "#ffffff",
  ink: "#1c2430",
  edge: "#aab4c5",
  faded: "#e6e9ef",
  accent: "#1c2430",
};

export const DARK: Theme = {
  dark: true,
  ground: "#12161d",
  ink: "#e6eaf2",
  edge: "#566279",
  faded: "#232a35",
  accent: "#ffffff",
};

/** What the page around us says, be it JupyterLab, VS Code or a page of ours; else what the reader prefers. */
export function currentTheme(host: HTMLElement): Theme {
  const asked = host.dataset["theme"] ?? document.documentElement.dataset["theme"];
  if (asked === "dark" || asked === "light") return asked === "dark" ? DARK : LIGHT;
  const { body } = document;
  const jupyter = body.dataset["jpThemeLight"];
  if (jupyter !== undefined) return jupyter === "false" ? DARK : LIGHT;
  if (body.classList.contains("vscode-dark")) return DARK;
  if (body.classList.contains("vscode-light")) return LIGHT;
  return matchMedia("(prefers-color-scheme: dark)").matches ? DARK : LIGHT;
}

/** Calls when the theme may have changed, until the signal. */
export function watchTheme(host: HTMLElement, changed: () => void, signal: AbortSignal): void {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed, { signal });
  const observer = new MutationObserver(changed);
  const attributeFilter = ["data-theme", "data-jp-theme-light", "class"];
  for (const element of [host, document.documentElement, document.body]) observer.observe(element, { attributeFilter });
  signal.addEventListener("abort", () => observer.disconnect());
}
