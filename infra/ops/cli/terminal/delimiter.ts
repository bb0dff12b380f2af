/** Finds what stands between the cells of a text that a spreadsheet wrote. */

/** The delimiter that is in most lines, outside of quotes; where commas stand in amounts, the other one. */
export function delimiterOf(text: string): string {
  const lines = text
    .replaceAll(/"([^"]|"")*"/g, '')
    .split(/[\r\n]+/)
    .filter((line) => line.trim() !== '');
  const countOf = (delimiter: string): number => lines.filter((line) => line.includes(delimiter)).length;
  return ['\t', ';', ','].reduce((best, each) => (countOf(each) > countOf(best) ? each : best));
}
