/** Crockford's base 32 in lower case. The characters sort in the order of their values. */
export const idAlphabet = '0123456789abcdefghjkmnpqrstvwxyz';

const idPattern = /^[0-9a-hjkmnp-tv-z]{26}$/;
const timeLength = 10;

/** The first 10 characters of a request id: its creation time in epoch milliseconds. */
export function timeText(milliseconds: number): string {
  let text = '';
  let rest = milliseconds;
  for (let place = 0; place < timeLength; place += 1) {
    text = idAlphabet.charAt(rest % 32) + text;
    rest = Math.floor(rest / 32);
  }
  return text;
}

/** The start of a request in epoch milliseconds, read from its id; undefined if that is no request id. */
export function requestTimeMs(id: string): number | undefined {
  if (!idPattern.test(id)) return undefined;
  let milliseconds = 0;
  for (const character of id.slice(0, timeLength))
    milliseconds = milliseconds * 32 + idAlphabet.indexOf(character);
  return milliseconds;
}
