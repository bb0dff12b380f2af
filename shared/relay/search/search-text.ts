/** Cleans foreign text for a query or a prompt: one line, no tags, limited length. */

/** Text beyond this length is ignored. */
const readLengthMax = 20_000;

/** Removes control characters and the tags with which providers highlight matches. */
export const oneLine = (text: string): string =>
  cut(text, readLengthMax)
    .replace(/<\/?[a-z][^<>]{0,200}>/gi, '')
    .replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .trim();

/** Cuts between characters, never inside a pair of UTF-16 surrogates. */
export function cut(text: string, lengthMax: number): string {
  const kept = text.slice(0, lengthMax);
  return /[\uD800-\uDBFF]$/.test(kept) ? kept.slice(0, -1) : kept;
}
