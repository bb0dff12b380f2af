/** Makes elements. Text is always a text node: nothing here takes markup. */

export type Child = Node | string;

export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  properties: Partial<HTMLElementTagNameMap[Name]> = {},
  children: readonly Child[] = [],
): HTMLElementTagNameMap[Name] {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

export function button(label: string, act: () => void): HTMLButtonElement {
  const made = element('button', { type: 'button' }, [label]);
  made.addEventListener('click', act);
  return made;
}

/** The element of the page with this id. The page and this script are one file, so it is there. */
export function byId(id: string): HTMLElement {
  return typedById(id, HTMLElement);
}

export const inputById = (id: string): HTMLInputElement => typedById(id, HTMLInputElement);
export const areaById = (id: string): HTMLTextAreaElement => typedById(id, HTMLTextAreaElement);
export const choiceById = (id: string): HTMLSelectElement => typedById(id, HTMLSelectElement);
export const buttonById = (id: string): HTMLButtonElement => typedById(id, HTMLButtonElement);

function typedById<Kind extends HTMLElement>(id: string, kind: new () => Kind): Kind {
  const found = document.querySelector(`#${id}`);
  if (!(found instanceof kind)) throw new Error(`no element ${id}`);
  return found;
}

export const svg = (
  name: string,
  attributes: Record<string, string | number>,
  children: readonly Child[] = [],
): SVGElement => {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  made.append(...children);
  return made;
};
