/** Markup with everything stored escaped: `html` escapes each value that is not markup itself; and keys masked, wherever they stand. */
import { html, raw } from 'hono/html';

/** `raw`: markup that was made here before, as text. */
export { html, raw };

export type Markup = ReturnType<typeof html>;

/** Content of markup. Texts are escaped. */
export type Content = Markup | string | number | undefined | null | false | readonly Content[];

export const nothing: Markup = html``;

export function formatCell(value: unknown): string {
  if (value === undefined) return '';
  if (typeof value === 'string') return value;
  if (value instanceof Set) return [...value].map(String).join(', ');
  if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value.join(', ');
  return JSON.stringify(value, (_, each: unknown) => (typeof each === 'bigint' ? String(each) : each)) ?? '';
}

/** A client's key, or one of many vendors': one may stand in a wrong attribute, a note or an error. */
const keyPattern = /\bsk-[\w-]{20,}/g;

export const maskKeys = (text: string, revealed: ReadonlySet<string> = new Set()): string =>
  text.replaceAll(keyPattern, (key) => (revealed.has(key) ? key : `${key.slice(0, 7)}...${key.slice(-4)}`));
