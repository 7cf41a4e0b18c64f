// Makes elements. Text is always set as text, never as HTML: names in a report come from untrusted
// files.

type Attributes = Record<string, string | number>;

export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  return complete(document.createElement(tag), attributes, children);
}

/** Makes a button that calls act. */
export function button(act: () => void, attributes: Attributes, ...children: (Node | string)[]): HTMLButtonElement {
  const made = element('button', { type: 'button', ...attributes }, ...children);
  made.addEventListener('click', act);
  return made;
}

export function node(tag: string, attributes: Attributes, ...children: (Node | string)[]): SVGElement {
  return complete(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

function complete<E extends Element>(e: E, attributes: Attributes, children: (Node | string)[]): E {
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, String(value));
  e.append(...children);
  return e;
}
