/** Markup with everything stored escaped: `html` escapes each value that is not markup itself. For every page and file of operators. */
import { html } from 'hono/html';

export { html };

export type Markup = ReturnType<typeof html>;

/** What may stand in a place of markup. Texts are escaped. */
export type Content = Markup | string | number | undefined | null | false | readonly Content[];

export const nothing: Markup = html``;

/** Text of a row that may be anything at all. */
export function shownValue(value: unknown): string {
  if (value === undefined) return '';
  if (typeof value === 'string') return value;
  if (value instanceof Set) return [...value].map(String).join(', ');
  if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value.join(', ');
  return JSON.stringify(value, (_, each: unknown) => (typeof each === 'bigint' ? String(each) : each)) ?? '';
}
