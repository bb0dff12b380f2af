/** Creates elements. Text always becomes a text node; nothing here takes markup. */

import { t } from './language.ts';

export type Child = Node | string;

export function createNode<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  properties: Partial<HTMLElementTagNameMap[Name]> = {},
  children: readonly Child[] = [],
): HTMLElementTagNameMap[Name] {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

export const codeOf = (text: string): HTMLElement => createNode('code', {}, [text]);

/** Creates a definition list; pairs without a text are left out. */
export const createDefinitions = (
  pairs: readonly (readonly [name: string, text: string | null])[],
): HTMLElement[] =>
  pairs.flatMap(([name, text]) =>
    text === null ? [] : [createNode('dt', {}, [name]), createNode('dd', {}, [text])],
  );

/** Each cell knows its column's name, which narrow screens show. */
export function createFiguresRow(
  head: readonly Child[],
  names: readonly string[],
  texts: readonly string[],
): HTMLElement {
  const cells = texts.map((text, at) => {
    const made = createNode('td', {}, [text]);
    made.dataset['name'] = names[at] ?? '';
    return made;
  });
  return createNode('tr', {}, [createNode('th', { scope: 'row' }, head), ...cells]);
}

export function createButton(label: string, act: () => void): HTMLButtonElement {
  const made = createNode('button', { type: 'button' }, [label]);
  made.addEventListener('click', act);
  return made;
}

export function handleSubmit(id: string, act: () => void, options?: AddEventListenerOptions): void {
  const submitted = (event: Event): void => {
    event.preventDefault();
    act();
  };
  byId(id).addEventListener('submit', submitted, options);
}

/** The page and this script are one file, so the element exists. */
export function byId(id: string): HTMLElement {
  return findTyped(id, HTMLElement);
}

/** Reports a result; errors are marked. */
export function say(id: string, text: string, isWrong = false): void {
  const target = byId(id);
  target.textContent = text;
  target.classList.toggle('wrong', isWrong);
}

export const findInput = (id: string): HTMLInputElement => findTyped(id, HTMLInputElement);
export const findTextArea = (id: string): HTMLTextAreaElement => findTyped(id, HTMLTextAreaElement);
export const findSelect = (id: string): HTMLSelectElement => findTyped(id, HTMLSelectElement);
export const findButton = (id: string): HTMLButtonElement => findTyped(id, HTMLButtonElement);

function findTyped<Kind extends HTMLElement>(id: string, kind: new () => Kind): Kind {
  const found = document.querySelector(`#${id}`);
  if (!(found instanceof kind)) throw new Error(`no element ${id}`);
  return found;
}

export const createSvg = (
  name: string,
  attributes: Record<string, string | number>,
  children: readonly Child[] = [],
): SVGElement => {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  made.append(...children);
  return made;
};

/** Small amounts keep their first significant digits, unless `decimals` fixes their number. */
export function formatYuan(amount: number, decimals?: number): string {
  const size = Math.abs(amount);
  const digits = size === 0 || size >= 1 ? 2 : Math.min(9, 2 - Math.floor(Math.log10(size)));
  const text = size.toLocaleString('en-US', {
    minimumFractionDigits: decimals ?? 2,
    maximumFractionDigits: decimals ?? digits,
  });
  return `${amount < 0 ? '−' : ''}¥${text}`;
}

/** Gives all amounts of a column the same number of decimals, so that they align. */
export function formatYuanColumn(amounts: readonly number[]): (amount: number) => string {
  const decimals = Math.max(2, ...amounts.map((amount) => formatYuan(amount).split('.')[1]?.length ?? 0));
  return (amount) => formatYuan(amount, decimals);
}

export const formatPerMillion = (perThousand: number): string => formatYuan(perThousand * 1000);

export const formatTime = (seconds: number): string =>
  new Date(seconds * 1000).toLocaleString(t().locale, {
    year: 'numeric',
    month: 'short',
    day: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    timeZoneName: 'short',
  });
/** The relay's days are in UTC. */
export const formatDay = (seconds: number): string =>
  new Date(seconds * 1000).toLocaleDateString(t().locale, {
    day: 'numeric',
    month: 'short',
    timeZone: 'UTC',
  });
