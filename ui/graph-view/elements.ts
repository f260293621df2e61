/** DOM elements whose text is always text: nothing here parses HTML. */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export function button(label: string, title: string, pressed: () => void): HTMLButtonElement {
  const made = element("button", { type: "button", title, "aria-label": title }, label);
  made.addEventListener("click", pressed);
  return made;
}

/** A menu of names under a first entry that stands for null. */
export function menu(title: string, chosen: (value: string | null) => void): HTMLSelectElement {
  const made = element("select", { "aria-label": title, title });
  made.addEventListener("change", () => chosen(made.selectedIndex <= 0 ? null : made.value));
  return made;
}

export function fillMenu(menu: HTMLSelectElement, first: string, names: string[], value: string | null): void {
  const options = names.map((name) => element("option", { value: name }, name));
  menu.replaceChildren(element("option", { value: "" }, first), ...options);
  const place = value === null ? -1 : names.indexOf(value);
  menu.selectedIndex = place + 1;
}

export function swatch(colour: string): HTMLElement {
  const made = element("i", { class: "swatch" });
  made.style.background = colour;
  return made;
}
