/** Foreign text made fit for a query and a prompt: one line, no tags, bounded. */

/** The rest of a longer text is ignored. */
const readLengthMax = 20_000;

/** Without the tags that providers mark hits with, and without control characters. */
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
