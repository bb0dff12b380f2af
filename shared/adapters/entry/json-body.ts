/**
 * Decompresses and parses the JSON body of a request. Must never unpack more bytes or parse more values than memory allows.
 */
import { smallSize, type BodyReading, type HeldRoom } from '../../relay/http/http.ts';
import { refuse, type Refusal } from '../../relay/http/refusal.ts';
import { checkBounds, parseJson } from '../../wire/json.ts';

const megabyte = 1024 * 1024;
/** AWS rejects events above 6 MB itself, so only compressed bodies reach this limit of functions. */
const functionBytesMax = 6 * megabyte;
export const serverMegabytesMax = 64;

const levelsMax = 200;
/**
 * Validation takes up to 1 KB and 3 to 7 µs per value. Larger bodies may hold proportionally more values, up to what one
 * process can check without delaying others too long.
 */
const values = { least: 100_000, per: 4 * megabyte, most: 200_000 };
/** Room that a value takes beside its bytes: it needs 200 bytes of heap, of which room is a fifth. */
const valueBytes = 40;

/** A server, which serves many requests at once. */
export interface SharedHost {
  bodyBytesMax: number;
  room: HeldRoom;
  /** Resolves when the event loop may be held for so many bytes. */
  turn(bytes: number): Promise<void>;
}

/**
 * Rejects with a Refusal that explains what is wrong with the body.
 * @param encoding the header `content-encoding`
 */
export async function readJsonBody(
  sent: string | Uint8Array,
  encoding = '',
  host?: SharedHost,
  { valuesMax, large, counted }: BodyReading = {},
): Promise<unknown> {
  const bytes = Buffer.byteLength(sent);
  if (bytes > bytesMaxOf(host)) throw refuseTooLarge(`has ${bytes} bytes`, host);
  let isLarge = false;
  const admitLarge = async (): Promise<void> => {
    if (!isLarge) await large?.();
    isLarge = true;
  };
  if (bytes > smallSize.bytes) await admitLarge();
  const name = encoding.trim().toLowerCase();
  const isPlain = name === '' || name === 'identity';
  const body = isPlain
    ? sent
    : await unpackBody(sent, name, host, large && !isLarge ? admitLarge : undefined);
  await host?.turn(body.length);
  const text = decodeText(body);
  const valueCount = countValues(text, body.length, valuesMax);
  if (valueCount > smallSize.values) await admitLarge();
  counted?.(body.length, valueCount);
  takeRoom(host, valueCount * valueBytes);
  const json = parseJson(text);
  if (json === undefined) throw refuse('invalid_json', 'The body is not valid JSON.');
  // Checking and counting took longer than parsing will.
  await host?.turn(body.length);
  return json;
}

function decodeText(body: string | Uint8Array): string {
  const text = stripByteOrderMark(typeof body === 'string' ? body : decodeUtf8(body));
  if (text.trim() === '') throw refuse('empty_body', 'The body is empty. Send a JSON object.');
  return text;
}

/** @param most default: in proportion to the length */
function countValues(text: string, length: number, most: number | undefined): number {
  const inProportion = Math.floor((values.least * length) / values.per);
  const valuesMax = most ?? Math.min(values.most, Math.max(values.least, inProportion));
  const found = checkBounds(text, { levelsMax, valuesMax });
  if (found === 'levels') throw refuse('json_too_deep', `The body nests deeper than ${levelsMax} levels.`);
  if (found === 'values') throw refuse('json_too_wide', `The body holds more than ${valuesMax} values.`);
  return found;
}

/** @param admitLarge runs before a large body is unpacked; without it, there is no small try first */
async function unpackBody(
  sent: string | Uint8Array,
  name: string,
  host: SharedHost | undefined,
  admitLarge: (() => Promise<void>) | undefined,
): Promise<Uint8Array> {
  const small = admitLarge ? await unpackWithin(sent, name, smallSize.bytes, host) : 'too_large';
  if (small !== 'too_large') return small;
  await admitLarge?.();
  const body = await unpackWithin(sent, name, bytesMaxOf(host), host);
  if (body === 'too_large') throw refuseTooLarge('is too large once it is unpacked', host);
  return body;
}

async function unpackWithin(
  sent: string | Uint8Array,
  name: string,
  bytesMax: number,
  host: SharedHost | undefined,
): Promise<Uint8Array | 'too_large'> {
  // Most clients never compress a body.
  const { findUnpacker } = await import('./packed-body.ts');
  const unpack = findUnpacker(name);
  takeRoom(host, bytesMax);
  let length = 0;
  try {
    const body = await unpack(typeof sent === 'string' ? Buffer.from(sent, 'latin1') : sent, bytesMax);
    if (body !== 'too_large') length = body.byteLength;
    return body;
  } finally {
    host?.room.give(bytesMax - length);
  }
}

function takeRoom(host: SharedHost | undefined, bytes: number): void {
  if (host?.room.take(bytes) !== false) return;
  throw refuse(
    'unavailable',
    'This server has no room for the body right now. Nothing was charged; try again.',
    { headers: { 'retry-after': '1' }, reason: 'server_no_room' },
  );
}

const bytesMaxOf = (host: Pick<SharedHost, 'bodyBytesMax'> | undefined): number =>
  host?.bodyBytesMax ?? functionBytesMax;

/** @param what follows "The body": `has 7000000 bytes` */
export function refuseTooLarge(what: string, host: Pick<SharedHost, 'bodyBytesMax'> | undefined): Refusal {
  const bytesMax = bytesMaxOf(host);
  const most = `at most ${bytesMax} bytes (${Math.floor(bytesMax / megabyte)} MB)`;
  const advice = 'Send fewer or smaller images, or less of the conversation.';
  return refuse(
    'request_too_large',
    host
      ? `The body ${what}; this relay runs as a server, which takes ${most} unpacked. ${advice} Its operator may allow up to ${serverMegabytesMax} MB.`
      : `The body ${what}; this relay runs on functions, which take ${most} unpacked. ${advice} A relay that runs as a server takes 32 MB.`,
  );
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw refuse('invalid_encoding', 'The body is not valid UTF-8.');
  }
}

const stripByteOrderMark = (text: string): string => (text.startsWith('\uFEFF') ? text.slice(1) : text);
