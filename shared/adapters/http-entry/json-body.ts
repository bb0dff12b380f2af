/** Parses a request body as JSON, within limits for size, depth and number of values. */
import { refuse } from '../../relay/http/refusal.ts';
import { brokenBound } from '../../wire/json-record.ts';

export const bodyBytesMax = 4 * 1024 * 1024;
const levelsMax = 200;
/** Validation needs up to a kilobyte per value, so millions of values would exhaust the function's memory. */
const valuesMax = 100_000;

/** Throws a Refusal that explains what is wrong with the body. */
export function readJsonBody(body: string | Uint8Array): unknown {
  const text = readText(body);
  if (text.trim() === '') throw refuse('empty_body', 'The body is empty. Send a JSON object.');
  const broken = brokenBound(text, { levelsMax, valuesMax });
  if (broken === 'levels') throw refuse('json_too_deep', `The body nests deeper than ${levelsMax} levels.`);
  if (broken === 'values') throw refuse('json_too_wide', `The body holds more than ${valuesMax} values.`);
  try {
    return JSON.parse(text);
  } catch {
    throw refuse('invalid_json', 'The body is not valid JSON.');
  }
}

function readText(body: string | Uint8Array): string {
  refuseAbove(Buffer.byteLength(body));
  return withoutByteOrderMark(typeof body === 'string' ? body : decodeUtf8(body));
}

/** Throws a Refusal for a body of so many bytes if that is too many. */
export function refuseAbove(bytes: number): void {
  if (bytes > bodyBytesMax)
    throw refuse(
      'request_too_large',
      `The body has ${bytes} bytes; at most ${bodyBytesMax} (4 MB) are accepted.`,
    );
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw refuse('invalid_encoding', 'The body is not valid UTF-8.');
  }
}

const withoutByteOrderMark = (text: string): string => (text.startsWith('\uFEFF') ? text.slice(1) : text);
