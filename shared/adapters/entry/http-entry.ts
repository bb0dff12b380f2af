/**
 * Wraps a handle for every host: request id, errors as responses, origin check, loop check. Every response has
 * `x-request-id`. Must never reject, because the host would have no response to send.
 */
import { hash, timingSafeEqual } from 'node:crypto';
import middy from '@middy/core';
import type { Context } from 'aws-lambda';
import {
  smallSize,
  type BodyReading,
  type MemoryRoom,
  type HostedHandle,
  type RelayRequest,
  type RelayResponse,
} from '../../relay/http/http.ts';
import { toRefusal, respondRefusal, refuse, type Refusal } from '../../relay/http/refusal.ts';
import { hopHeader, loopHeader } from '../../wire/ids.ts';
import { checkBounds, decodePercent, parseJson } from '../../wire/json.ts';

/** The distribution sends the origin secret in this header. */
export const originHeader = 'x-relay-origin';

/** Relays may be chained this often, each the upstream of the one before. */
const hopsMax = 4;

/** `request` reads the host's request once, and throws for an invalid one. */
interface EnteringRequest {
  id: string;
  startedMs: number;
  request: () => RelayRequest;
}

/** Body size and JSON are not checked here: the relay reads a body after it has checked the key. */
export function createHttpEntry(hosted: HostedHandle): (read: () => HostRequest) => Promise<RelayResponse> {
  const { clock, ids, local, log, originSecrets } = hosted;
  const chain = middy<EnteringRequest, RelayResponse>({ timeoutEarlyInMillis: 0 })
    .before(({ event: { request } }) => {
      if (!isFromOrigin(request().headers[originHeader], hosted))
        throw refuse('origin_denied', 'This address is not public. Use the base URL of the relay.');
    })
    .before(({ event: { request } }) => {
      const hops = readHops(request());
      const isFromThisRelay = originSecrets.some((secret) => hops.includes(deriveHopId(secret)));
      if (isFromThisRelay || hops.length >= hopsMax) throw refuseLoop(isFromThisRelay);
    })
    .after(({ event: { id }, response }) => {
      if (!response) return undefined;
      const done = response.done.catch((error: unknown) => log.fault(id, error));
      return { ...response, headers: { ...response.headers, 'x-request-id': id }, done };
    })
    .onError(({ event: { id, startedMs }, error }) => {
      const refusal = toRefusal(error);
      const { status, body } = refusal;
      const duration_ms = clock.now() - startedMs;
      const { code } = body.error;
      if (error === refusal)
        log.request({ request_id: id, endpoint: 'edge', status, end: 'refused', duration_ms, code });
      else log.fault(id, error);
      return respondRefusal(refusal, id);
    })
    .handler(({ request }) => callHandle(request(), hosted));
  return (read) => {
    const id = ids.next();
    let relayRequest: RelayRequest | undefined;
    const request = (): RelayRequest => (relayRequest ??= createRelayRequest(read(), { id, local }));
    // middy needs a context, but nothing here uses it.
    return chain({ id, startedMs: clock.now(), request }, {} as Context);
  };
}

const refuseLoop = (isFromThisRelay: boolean): Refusal =>
  refuse(
    'relay_loop',
    isFromThisRelay
      ? 'This call came from this relay itself: one of its channels leads back to it. Nothing was charged. Correct the endpoint of that channel.'
      : `This call passed ${hopsMax} relays before this one, which is the maximum. Nothing was charged.`,
    { headers: { [loopHeader]: '1', 'x-should-retry': 'false' } },
  );

const readHops = ({ headers }: RelayRequest): string[] => headers[hopHeader]?.match(/[0-9a-f]{16}/g) ?? [];

/** Handles HEAD like GET and closes a streamed body, because hosts send none. */
async function callHandle(
  request: RelayRequest,
  { handle, originSecrets }: HostedHandle,
): Promise<RelayResponse> {
  // The secret grants access to every function of the stack, so the relay never sees it.
  const { [originHeader]: _secret, [hopHeader]: _passed, ...headers } = request.headers;
  const hops = [...readHops(request), ...originSecrets.slice(-1).map(deriveHopId)].join(', ');
  if (request.method !== 'HEAD') return handle({ ...request, headers, hops });
  const response = await handle({ ...request, method: 'GET', headers, hops });
  if (typeof response.body !== 'string') await response.body[Symbol.asyncIterator]().return?.();
  return { ...response, body: '' };
}

/** Identifies this stack among relays: equal in all of its functions, unique, and opaque to upstreams. */
const deriveHopId = (secret: string): string => hashText(`hop of ${secret}`).toString('hex').slice(0, 16);

/**
 * The distribution adds a secret. Compares in constant time and with every accepted secret, so that the duration reveals
 * nothing. An empty list accepts no request.
 */
export function isFromOrigin(
  sent: string | undefined,
  { originSecrets: accepted }: Pick<HostedHandle, 'originSecrets'>,
): boolean {
  const sentDigest = hashText(sent ?? '');
  let matches = 0;
  for (const secret of accepted) matches += Number(timingSafeEqual(sentDigest, hashText(secret)));
  return matches > 0 && Boolean(sent);
}

// timingSafeEqual needs equal lengths.
const hashText = (text: string): Buffer => hash('sha256', text, 'buffer');

// The host's request and its conversion. Its content is not trusted: the origin check runs on the result.

export interface HostRequest {
  method: string;
  /** As sent, with escapes and without the query. */
  path: string;
  query: string;
  headers: Record<string, string | undefined>;
  /** Part of the base URL unless the distribution sends another name. */
  host: string;
  /** Called after the key check, and at most once. Bytes if the host does not know the encoding. */
  body(): string | Uint8Array;
  /** The host ends the invocation then (epoch milliseconds). */
  deadlineMs: number;
  ends?: AbortSignal;
  /** Set by servers, which serve many requests at once. */
  shared?: SharedHost;
}

/** @param local true on the local stack, whose public address is http */
export function createRelayRequest(
  received: HostRequest,
  { id, local }: { id: string; local: boolean },
): RelayRequest {
  const headers = Object.fromEntries(
    Object.entries(received.headers).map(([name, value]) => [name.toLowerCase(), value]),
  );
  const host = readPublicHost(headers['x-forwarded-host']) ?? received.host;
  let json: Promise<unknown> | undefined;
  return {
    id,
    method: received.method,
    path: decodePercent(received.path),
    query: new URLSearchParams(received.query),
    headers,
    baseUrl: `${local ? 'http' : 'https'}://${host}/v1`,
    json: (reading) =>
      (json ??= readJsonBody(received.body(), headers['content-encoding'], received.shared, reading)),
    rawBody: () => received.body(),
    hostDeadlineMs: received.deadlineMs,
    hostEnds: received.ends,
    room: received.shared?.room,
  };
}

/** From the distribution's header. Messages and pages quote it, so only a valid host name is accepted. */
function readPublicHost(forwarded: string | undefined): string | undefined {
  return forwarded !== undefined && /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?(:\d{1,5})?$/i.test(forwarded)
    ? forwarded
    : undefined;
}

// Decompresses and parses a JSON body. Must never unpack more bytes or parse more values than memory allows.

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
  room: MemoryRoom;
  /** Resolves when work on so many bytes may block the event loop. */
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
