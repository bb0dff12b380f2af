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

/** Whether a text has the form of a key. Other texts are refused before any table is read. */
export const isSecretKey = (text: string): boolean => /^sk-[\x21-\x7e]{1,200}$/.test(text);

/** The part of a key that lists and logs show: enough to recognise the key, too little to guess it. */
export const keyHint = (secretKey: string): string => `${secretKey.slice(0, 7)}...${secretKey.slice(-4)}`;

/** A model name in requests, in rows and in upstreams' lists of models. */
export const modelNamePattern = /^[A-Za-z0-9._:/@-]{1,128}$/;

/** The longest name of a tool, of a namespace and of an author: OpenAI's limit. */
export const calledNameMax = 64;

/** What every seal of the relay begins with. The whole form is `relay1.<number of the key>.<base64url>`. */
export const sealPrefix = 'relay1.';

/**
 * On requests to upstreams: the ids of the relays that the call passed, oldest first. Of our own making, because proxies
 * and vendors rewrite `via`, and refuse requests by it.
 */
export const hopHeader = 'x-relay-hop';

/** On a refusal because of a loop, so that the relay before this one can name the cause without reading the body. */
export const loopHeader = 'x-relay-loop';
