/** Text in HTML. Every text of a row or a header must pass `escaped`. */

const entities: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

export const escaped = (text: string): string =>
  text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? '');

/** A text of people, in the direction of its own script. */
export const ownDirection = (text: string): string => `<bdi>${escaped(text)}</bdi>`;

export const code = (text: string): string => `<code>${escaped(text)}</code>`;

/** The beginning of both pages. Optional end tags are left out: a page with hundreds of models stays small. */
export const headOf = (title: string, style: string): string => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(title)}</title>
<style>${style}</style>`;
