/** All doubles behind one server, each below its own name, with what they were sent. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Listening, listenOnFreePort, createProgramServer } from '../host/loopback.ts';
import { createAnthropicDouble } from './anthropic.ts';
import { createBedrockDouble } from './bedrock.ts';
import { createDeepseekDouble } from './deepseek.ts';
import { createDemoDouble } from './demo.ts';
import { createGeminiDouble } from './gemini.ts';
import { createOpenaiDouble } from './openai.ts';
import { createPickyDouble } from './picky.ts';
import { replyWithJson, parseObject, type Vendor, type VendorReply, type VendorRequest } from './vendor.ts';

export interface SeenRequest {
  method: string;
  path: string;
  headers: Record<string, string>;
  /** Parsed, if it is a JSON object; else its text. */
  body: unknown;
  status: number;
  /** The rule that the request broke, or the failure that its text asked for. */
  rule?: string;
  notes: string[];
}

export interface Vendors {
  /** The endpoint of a channel row: the dialect's path is appended to it. */
  url(vendor: string): string;
  /** The latest requests, oldest first. */
  requests(vendor: string): SeenRequest[];
  close(): Promise<void>;
}

/** Fresh doubles: they remember what they were sent, each for itself. */
export const createVendorDoubles = (): Vendor[] => [
  createOpenaiDouble(),
  createGeminiDouble(),
  createDeepseekDouble(),
  createAnthropicDouble(),
  createBedrockDouble(),
  createPickyDouble(),
];

const logMax = 2000;

/**
 * Serves all doubles and the demo upstream on a free port of loopback; Bedrock has a port of its own too, since its rows name
 * a host without a path.
 */
export async function startVendors(): Promise<Vendors> {
  const doubles = new Map(
    [createDemoDouble(), ...createVendorDoubles()].map((vendor) => [vendor.name, vendor]),
  );
  const logs = new Map([...doubles.keys()].map((name) => [name, [] as SeenRequest[]]));
  const answer = async (name: string, incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const request = await requestOf(incoming, name);
    const reply = await replyOf(doubles.get(name), request);
    const log = logs.get(name);
    log?.push(recordRequest(request, reply));
    if (log && log.length > logMax) log.shift();
    await send(response, reply);
  };
  const startVendorServer = (nameOf: (request: IncomingMessage) => string): Promise<Listening> =>
    listenOnFreePort(createProgramServer((request, response) => answer(nameOf(request), request, response)));
  const own = 'bedrock';
  const shared = await startVendorServer(({ url = '' }) => url.split('/')[1] ?? '');
  const ofOne = await startVendorServer(() => own);
  const getVendor = (name: string): Vendor => {
    const vendor = doubles.get(name);
    if (!vendor) throw new Error(`there is no double of ${name}`);
    return vendor;
  };
  return {
    url: (name) => (name === own ? ofOne.endpoint : `${shared.endpoint}/${name}${getVendor(name).base}`),
    requests: (name) => logs.get(getVendor(name).name) ?? [],
    async close() {
      await Promise.all([shared.close(), ofOne.close()]);
    },
  };
}

async function requestOf(incoming: IncomingMessage, name: string): Promise<VendorRequest> {
  const [signedPath = ''] = (incoming.url ?? '').split('?');
  const prefix = `/${name}`;
  const headers = Object.entries(incoming.headers).map(([key, value]) => [key, [value].flat().join(', ')]);
  return {
    method: incoming.method ?? '',
    path: signedPath.startsWith(`${prefix}/`) ? signedPath.slice(prefix.length) : signedPath,
    signedPath,
    headers: Object.fromEntries(headers),
    text: (await buffer(incoming)).toString(),
  };
}

async function replyOf(vendor: Vendor | undefined, request: VendorRequest): Promise<VendorReply> {
  if (!vendor) return replyWithJson(404, { error: { message: 'There is no such double.' } });
  if (request.method === 'GET' && request.path === `${vendor.base}/models`) return replyWithModels(vendor);
  return vendor.serve(request);
}

/** A list that readers of OpenAI's and of Anthropic's form understand. */
const replyWithModels = ({ models, name, listed }: Vendor): VendorReply =>
  replyWithJson(200, {
    object: 'list',
    data: models.map((id) =>
      Object.assign({ id, object: 'model', type: 'model', created: 0, owned_by: name }, listed?.(id)),
    ),
    has_more: false,
    first_id: models[0],
    last_id: models.at(-1),
  });

const recordRequest = (
  { method, signedPath, path, headers, text }: VendorRequest,
  reply: VendorReply,
): SeenRequest => ({
  method,
  path: signedPath ?? path,
  headers,
  body: parseObject(text) ?? text,
  status: reply.status,
  ...(reply.rule !== undefined && { rule: reply.rule }),
  notes: reply.notes ?? [],
});

/**
 * Stops when the caller has left. A broken connection breaks only after everything before it was sent; a silent one stays
 * open.
 */
async function send(
  response: ServerResponse,
  { status, headers, frames, pace, ending }: VendorReply,
): Promise<void> {
  response.writeHead(status, headers);
  response.flushHeaders();
  if (pace) await sleep(pace.firstMs);
  for (const frame of frames.slice(0, -1)) {
    if (response.destroyed) return;
    response.write(frame);
    if (pace) await sleep(pace.frameMs);
  }
  const last = frames.at(-1);
  if (ending === undefined) response.end(last);
  else response.write(last ?? '', () => ending === 'destroyed' && response.destroy());
}
