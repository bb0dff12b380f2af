import { refuse } from '../../relay/http/refusal.ts';
import { brokenBound } from './json-bounds.ts';

const bodyBytesMax = 4 * 1024 * 1024;
const levelsMax = 200;
/** Every value costs up to a kilobyte while it is checked: millions of them would end the process. */
const valuesMax = 100_000;

/** The body of a Function URL event: a string, or base64 when its bytes were not announced as text. */
export interface EventBody {
  body?: string | undefined;
  isBase64Encoded?: boolean | undefined;
}

/** Reads the JSON of a body. Throws a Refusal that says what is wrong with it. */
export function readJsonBody(event: EventBody): unknown {
  const text = readText(event);
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

function readText({ body = '', isBase64Encoded = false }: EventBody): string {
  refuseAbove(Buffer.byteLength(body, isBase64Encoded ? 'base64' : 'utf8'));
  return withoutByteOrderMark(isBase64Encoded ? decodeUtf8(Buffer.from(body, 'base64')) : body);
}

function refuseAbove(bytes: number): void {
  if (bytes > bodyBytesMax)
    throw refuse(
      'request_too_large',
      `The body has ${bytes} bytes; at most ${bodyBytesMax} (4 MB) are accepted.`,
    );
}

function decodeUtf8(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw refuse('invalid_encoding', 'The body is not valid UTF-8.');
  }
}

const withoutByteOrderMark = (text: string): string => (text.startsWith('\uFEFF') ? text.slice(1) : text);
