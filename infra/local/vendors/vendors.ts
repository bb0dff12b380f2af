import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { chunkFrame, bedrockDouble } from './bedrock.ts';
import {
  isObject,
  type Vendor,
  type VendorReply,
  jsonReply,
  objectIn,
  type VendorRequest,
} from './vendor.ts';
import { serverForPrograms, closeServer, listenOnLoopback } from '../host/loopback.ts';
import { anthropicDouble } from './anthropic.ts';
import { deepseekDouble } from './deepseek.ts';
import { geminiDouble } from './gemini.ts';
import { openaiDouble } from './openai.ts';
import { pickyDouble } from './picky.ts';

/** Ways in which an upstream reports other counts than it used, by name: `lie=input-zero` in the text asks for one. */
interface Lie {
  /** Changes a usage object of any vendor; returns what is sent instead of it. */
  tell(usage: Usage): unknown;
  /** A count that is sent can be true, so a relay cannot know better. */
  plausible?: true;
}

type Usage = Record<string, unknown>;
type Change = (count: number) => unknown;

const fieldsOf = {
  input: ['prompt_tokens', 'input_tokens'],
  output: ['completion_tokens', 'output_tokens'],
};
type Side = keyof typeof fieldsOf;

/** Vendors' totals follow their parts, so a lie about a part leaves none behind. */
function changed(usage: Usage, side: Side, change: Change): Usage {
  const { total_tokens: _, ...rest } = usage;
  const counts = Object.entries(rest).map(([name, value]) => {
    if (!fieldsOf[side].includes(name) || typeof value !== 'number') return [name, value];
    return [name, change(value)];
  });
  return Object.fromEntries(counts) as Usage;
}

const changes: Record<string, { change: Change; plausible?: true }> = {
  zero: { change: () => 0 },
  one: { change: () => 1 },
  tenth: { change: (count) => Math.round(count / 10) },
  half: { change: (count) => Math.round(count / 2) },
  less: { change: (count) => Math.round(count * 0.85), plausible: true },
  more: { change: (count) => Math.round(count * 1.2), plausible: true },
  tenfold: { change: (count) => 10 * count },
  million: { change: () => 1e6 },
  huge: { change: () => 1e12 },
  endless: { change: () => 1e300 },
  negative: { change: (count) => -count },
  'minus-one': { change: () => -1 },
  null: { change: () => null },
  absent: { change: () => undefined },
  word: { change: () => 'many' },
  digits: { change: String, plausible: true },
  'huge-digits': { change: () => '999999999999' },
  fraction: { change: (count) => count + 0.4, plausible: true },
  list: { change: (count) => [count] },
  object: { change: (count) => ({ count }) },
  true: { change: () => true },
};

const partLies = (side: Side): [string, Lie][] =>
  Object.entries(changes).map(([name, { change, plausible }]) => [
    `${side}-${name}`,
    { tell: (usage) => changed(usage, side, change), ...(plausible && { plausible }) },
  ]);

const both =
  (change: Change): Lie['tell'] =>
  (usage) =>
    changed(changed(usage, 'input', change), 'output', change);

const cacheSays =
  (cached: unknown): Lie['tell'] =>
  (usage) => ({
    ...usage,
    prompt_tokens_details: { cached_tokens: cached },
    ...('input_tokens' in usage && { input_tokens_details: { cached_tokens: cached } }),
  });

export const lies: Record<string, Lie> = {
  ...Object.fromEntries([...partLies('input'), ...partLies('output')]),
  'all-zero': { tell: both(() => 0) },
  'all-huge': { tell: both(() => 1e12) },
  'all-null': { tell: both(() => null) },
  'no-usage': { tell: () => undefined },
  'null-usage': { tell: () => null },
  'empty-usage': { tell: () => ({}) },
  'text-usage': { tell: () => 'none' },
  'total-of-nothing': { tell: (usage) => ({ ...usage, total_tokens: 0 }), plausible: true },
  'negative-total': { tell: (usage) => ({ ...usage, total_tokens: -5 }), plausible: true },
  'cache-of-words': { tell: cacheSays('all'), plausible: true },
};

/** The double, which tells the lie that the text of a request names. */
export const lying = (vendor: Vendor): Vendor => ({
  ...vendor,
  async serve(request) {
    const reply = await vendor.serve(request);
    const name = /\blie=([a-z-]+)/.exec(request.text)?.[1];
    const lie = name === undefined ? undefined : lies[name];
    return lie ? alteredReply(reply, lie) : reply;
  },
});

const alteredReply = (reply: VendorReply, lie: Lie): VendorReply => ({
  ...reply,
  frames: reply.frames.map((frame) =>
    typeof frame === 'string' ? alteredText(frame, lie) : alteredBytes(frame, lie),
  ),
});

const alteredText = (frame: string, lie: Lie): string =>
  frame
    .split('\n')
    .map((line) => {
      const [, prefix = '', json] = /^(data: )?(\{.*\})$/.exec(line) ?? [];
      return json === undefined ? line : prefix + JSON.stringify(altered(JSON.parse(json), lie));
    })
    .join('\n');

/** Bedrock's framing: lengths, checksum, headers, then JSON with the event in base64. */
function alteredBytes(frame: Uint8Array, lie: Lie): Uint8Array {
  const bytes = Buffer.from(frame);
  const { bytes: event } = JSON.parse(
    bytes.subarray(12 + bytes.readUInt32BE(4), bytes.length - 4).toString(),
  ) as { bytes?: string };
  if (event === undefined) return frame;
  return chunkFrame(altered(JSON.parse(Buffer.from(event, 'base64').toString()), lie) as { type: string });
}

/** Every `usage` in a value, however deep, that is an object. */
function altered(value: unknown, lie: Lie): unknown {
  if (Array.isArray(value)) return value.map((each) => altered(each, lie));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, part]) => [
      name,
      name === 'usage' && isObject(part) ? lie.tell(part) : altered(part, lie),
    ]),
  );
}

export interface LoggedRequest {
  method: string;
  path: string;
  headers: Record<string, string>;
  /** Parsed, if it is a JSON object; else its text. */
  body: unknown;
  status: number;
  /** The rule that the request broke, or the failure that its text asked for. */
  rule?: string;
  /** What the vendor tolerated. */
  notes: string[];
}

export interface Vendors {
  port: number;
  names: string[];
  /** The endpoint of a channel row: the dialect's path is appended to it. */
  url(vendor: string): string;
  /** The latest requests, oldest first. */
  requests(vendor: string): LoggedRequest[];
  close(): Promise<void>;
}

/** Fresh doubles: they remember what they were sent, each for itself. */
export const vendorDoubles = (): Vendor[] =>
  [openaiDouble(), geminiDouble(), deepseekDouble(), anthropicDouble(), bedrockDouble(), pickyDouble()].map(
    lying,
  );

const logMax = 2000;

/**
 * Serves all doubles on loopback, each below its own name; Bedrock has a port of its own too, since its rows name
 * a host without a path. Port 0 picks free ports; for any other, Bedrock's is the one after it.
 */
export async function startVendors(port = 0): Promise<Vendors> {
  const doubles = new Map(vendorDoubles().map((vendor) => [vendor.name, vendor]));
  const logs = new Map([...doubles.keys()].map((name) => [name, [] as LoggedRequest[]]));
  const answer = async (name: string, incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const request = await requestOf(incoming, name);
    const reply = await replyOf(doubles.get(name), request);
    const log = logs.get(name);
    log?.push(logged(request, reply));
    if (log && log.length > logMax) log.shift();
    send(response, reply);
  };
  const serverFor = (nameOf: (request: IncomingMessage) => string): Server =>
    serverForPrograms((request, response) => {
      answer(nameOf(request), request, response).catch(() => response.destroy());
    });
  const own = 'bedrock';
  const server = serverFor(({ url = '' }) => url.split('/')[1] ?? '');
  const ownServer = serverFor(() => own);
  const shared = await listenOnLoopback(server, port);
  const ownPort = await listenOnLoopback(ownServer, port === 0 ? 0 : port + 1);
  const vendorNamed = (name: string): Vendor => {
    const vendor = doubles.get(name);
    if (!vendor) throw new Error(`there is no double of ${name}`);
    return vendor;
  };
  return {
    port: shared,
    names: [...doubles.keys()],
    url: (name) =>
      name === own
        ? `http://127.0.0.1:${ownPort}`
        : `http://127.0.0.1:${shared}/${name}${vendorNamed(name).base}`,
    requests: (name) => logs.get(vendorNamed(name).name) ?? [],
    async close() {
      await Promise.all([closeServer(server), closeServer(ownServer)]);
    },
  };
}

async function requestOf(incoming: IncomingMessage, name: string): Promise<VendorRequest> {
  const [signedPath = ''] = (incoming.url ?? '').split('?');
  const prefix = `/${name}`;
  const headers = Object.entries(incoming.headers).map(([key, value]) => [key, [value].flat().join(', ')]);
  return {
    method: incoming.method ?? '',
    path: isBelow(signedPath, prefix) ? signedPath.slice(prefix.length) : signedPath,
    signedPath,
    headers: Object.fromEntries(headers),
    text: (await buffer(incoming)).toString(),
  };
}

const isBelow = (path: string, prefix: string): boolean => path.startsWith(`${prefix}/`);

async function replyOf(vendor: Vendor | undefined, request: VendorRequest): Promise<VendorReply> {
  if (!vendor) return jsonReply(404, { error: { message: 'There is no such double.' } });
  if (request.method === 'GET' && request.path === `${vendor.base}/models`) return modelList(vendor);
  return vendor.serve(request);
}

/** A list that readers of OpenAI's and of Anthropic's form understand. */
const modelList = ({ models, name }: Vendor): VendorReply =>
  jsonReply(200, {
    object: 'list',
    data: models.map((id) => ({ id, object: 'model', type: 'model', created: 0, owned_by: name })),
    has_more: false,
    first_id: models[0],
    last_id: models.at(-1),
  });

const logged = (
  { method, signedPath, path, headers, text }: VendorRequest,
  reply: VendorReply,
): LoggedRequest => ({
  method,
  path: signedPath ?? path,
  headers,
  body: objectIn(text) ?? text,
  status: reply.status,
  ...(reply.rule !== undefined && { rule: reply.rule }),
  notes: reply.notes ?? [],
});

/** A broken connection breaks only after everything before it was sent; a silent one stays open. */
function send(response: ServerResponse, { status, headers, frames, ending }: VendorReply): void {
  response.writeHead(status, headers);
  response.flushHeaders();
  const [last, ...others] = frames.toReversed();
  for (const frame of others.toReversed()) response.write(frame);
  if (ending === undefined) response.end(last);
  else response.write(last ?? '', () => ending === 'destroyed' && response.destroy());
}
