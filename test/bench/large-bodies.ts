/**
 * Compares the cost of a body of 32 MB with one of 4 MB, for each endpoint and kind of body: from its bytes to the upstream body.
 * Prints processor milliseconds and their ratio, and fails above `ratioMax`, because the cost is then no longer linear.
 * `node test/bench/large-bodies.ts`.
 */
import { estimateInput, findMedia, loadMediaReader } from '../../shared/billing/estimate/input-tokens.ts';
import { readJsonBody } from '../../shared/adapters/entry/http-entry.ts';
import { inflateWithZlib } from '../../shared/adapters/system/node-ports.ts';
import { chatEndpoint } from '../../shared/endpoints/chat/chat-endpoint.ts';
import type { Endpoint } from '../../shared/endpoints/endpoint.ts';
import { messagesEndpoint } from '../../shared/endpoints/messages/messages-endpoint.ts';
import { responsesEndpoint } from '../../shared/endpoints/responses/responses-endpoint.ts';
import { convertCall } from '../../shared/upstreams/called-channel.ts';
import { loadDialect } from '../../shared/upstreams/dialects/dialects.ts';
import { findRefusedUrl } from '../../shared/relay/call/content-urls.ts';
import { canonicalJson } from '../../shared/wire/json.ts';
import { settingsWith } from '../support/dialect-parts.ts';

/** Eight times the bytes, plus a margin for garbage collection. */
const ratioMax = 12;
const rounds = 3;
const megabyte = 1024 * 1024;

const source = '\tif (a === "b") {\n\t\treturn "c\\n";\n\t}\n';
/** Some five of four characters of it are escapes or stay. */
const sourceOf = (bytes: number): string => source.repeat(Math.floor((bytes * 0.75) / source.length));
const image = (bytes: number): string => 'QUJDREVGR0hJSktM'.repeat(Math.floor(bytes / 16));
const list = <T>(length: number, each: (at: number) => T): T[] => Array.from({ length }, (_, at) => each(at));

interface Bodies {
  chat: object;
  responses: object;
  messages: object;
}
const said = (content: unknown): object[] => [{ role: 'user', content }];
const url = 'data:image/png;base64,';
const kinds: Record<string, (bytes: number) => Bodies> = {
  picture(bytes) {
    const data = image(bytes - 400);
    return {
      chat: { messages: said([{ type: 'image_url', image_url: { url: url + data } }]) },
      responses: { input: said([{ type: 'input_image', image_url: url + data }]) },
      messages: {
        messages: said([{ type: 'image', source: { type: 'base64', media_type: 'image/png', data } }]),
      },
    };
  },
  text(bytes) {
    const text = sourceOf(bytes);
    return { chat: { messages: said(text) }, responses: { input: text }, messages: { messages: said(text) } };
  },
  'tool turns of 160 KB'(bytes) {
    const output = sourceOf(160_000);
    const ids = list(Math.floor(bytes / 160_500), (at) => `call_${at}`);
    const called = { name: 'look', arguments: '{}' };
    return {
      chat: {
        messages: [
          ...said('go'),
          ...ids.flatMap((id) => [
            { role: 'assistant', content: null, tool_calls: [{ id, type: 'function', function: called }] },
            { role: 'tool', tool_call_id: id, content: output },
          ]),
        ],
      },
      responses: {
        input: [
          ...said('go'),
          ...ids.flatMap((id) => [
            { type: 'function_call', call_id: id, ...called },
            { type: 'function_call_output', call_id: id, output },
          ]),
        ],
      },
      messages: {
        messages: [
          ...said('go'),
          ...ids.flatMap((id) => [
            { role: 'assistant', content: [{ type: 'tool_use', id, name: 'look', input: {} }] },
            { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: output }] },
          ]),
        ],
      },
    };
  },
  /** As many values as a body may have: 200,000 in 32 MB, an eighth in 4. */
  'short messages'(bytes) {
    const messages = list(Math.floor(bytes / 512), (at) => ({
      role: at % 2 ? 'assistant' : 'user',
      content: 'x'.repeat(460),
    }));
    return { chat: { messages }, responses: { input: messages }, messages: { messages } };
  },
};
const endpoints: Record<keyof Bodies, Endpoint> = {
  chat: chatEndpoint,
  responses: responsesEndpoint,
  messages: messagesEndpoint,
};

const host = {
  bodyBytesMax: 32 * megabyte,
  room: { take: () => true, give: () => undefined },
  turn: () => Promise.resolve(),
};

/** Milliseconds of processor from the bytes of a body to those of the upstream's, with what only some calls need. */
async function cost(name: keyof Bodies, sent: Buffer): Promise<number> {
  const dialect = await loadDialect(name);
  const before = process.cpuUsage();
  const body = await readJsonBody(sent, '', host);
  const { call } = endpoints[name].read(body, {});
  findRefusedUrl(findMedia(call), { contentUrls: ['data:image/'] });
  const media = await loadMediaReader(call, inflateWithZlib);
  estimateInput(call, media?.(undefined));
  canonicalJson([name, body]);
  JSON.stringify(convertCall(dialect, call, { ...settingsWith(), dropsUnknown: true }).body);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

async function least(name: keyof Bodies, body: object): Promise<number> {
  const sent = Buffer.from(JSON.stringify({ model: 'm', max_tokens: 9, ...body }));
  const costs: number[] = [];
  for (let round = 0; round < rounds; round += 1) costs.push(await cost(name, sent));
  return Math.min(...costs);
}

for (const [kind, bodiesOf] of Object.entries(kinds))
  for (const name of Object.keys(endpoints) as (keyof Bodies)[]) {
    const small = await least(name, bodiesOf(4 * megabyte)[name]);
    const large = await least(name, bodiesOf(32 * megabyte)[name]);
    const ratio = large / small;
    console.log(
      `${kind}, ${name}: ${Math.round(small)} ms for 4 MB, ${Math.round(large)} ms for 32 MB: ${ratio.toFixed(1)} times`,
    );
    if (ratio > ratioMax) process.exitCode = 1;
  }
