/** The requests that cost a server the most for their size, or block it the longest, as a caller would send them. */
import { createHash } from 'node:crypto';
import { brotliCompressSync, constants, gzipSync, zstdCompressSync } from 'node:zlib';
import { createSealer } from '../../../shared/adapters/system/node-ports.ts';
import { encryptSummary } from '../../../shared/relay/state/summary-seals.ts';
import { encryptTurn } from '../../../shared/relay/state/turn-states.ts';
import {
  base64,
  dataUrl,
  objectStream,
  packed,
  pdfOf,
  printed,
  savedAgain,
} from '../../support/pdf-files.ts';

export const sealSecret = 'seal';
export const models = { chat: 'bench', messages: 'claude', embeddings: 'vectors' };

export interface Request {
  method?: 'GET';
  path: string;
  headers?: Record<string, string>;
  body?: Buffer;
}

/** The sender, and the data stored for its account. */
export interface Sender {
  account: string;
  /** Ids of stored responses of 1 MB each, each without a response before it. */
  stored: readonly string[];
  /** The last response of a conversation of 8 MB. */
  conversation: string;
}

type Build = (sender: Sender) => Request;

const megabyte = 1024 * 1024;
const large = 30 * megabyte;
const list = <T>(length: number, each: (at: number) => T): T[] => Array.from({ length }, (_, at) => each(at));
const fill = (text: string, bytes: number): string => text.repeat(Math.ceil(bytes / Buffer.byteLength(text)));
const words = 'a few words of a long conversation about source code, ';
const source = '\tif (a === "b") {\n\t\treturn "c\\n";\n\t}\n';
const user = (content: unknown): object => ({ role: 'user', content });

const post =
  (path: string, body: string | Buffer, headers: Record<string, string> = {}): Build =>
  () => ({ path, headers, body: Buffer.from(body) });
const chat = (fields: object): string => JSON.stringify({ model: models.chat, max_tokens: 9, ...fields });
const chatOf =
  (fields: () => object): Build =>
  (sender) =>
    post('/v1/chat/completions', chat(fields()))(sender);
const saying = (content: () => unknown): Build => chatOf(() => ({ messages: [user(content())] }));
const responses = (fields: object): string =>
  JSON.stringify({ model: models.chat, max_output_tokens: 16, store: false, ...fields });
const responsesOf =
  (fields: (sender: Sender) => object): Build =>
  (sender) =>
    post('/v1/responses', responses(fields(sender)))(sender);
const messages = (fields: object): string =>
  JSON.stringify({ model: models.messages, max_tokens: 9, messages: [user('hi')], ...fields });
const messagesOf =
  (fields: () => object, path = '/v1/messages'): Build =>
  (sender) =>
    post(path, messages(fields()))(sender);
const embeddingsOf =
  (fields: () => object): Build =>
  (sender) =>
    post('/v1/embeddings', JSON.stringify({ model: models.embeddings, ...fields() }))(sender);
/** A chat body with raw JSON as text, which no serializer would write. */
const rawChat =
  (members: () => string): Build =>
  (sender) =>
    post('/v1/chat/completions', `${chat({ messages: [user('hi')] }).slice(0, -1)},${members()}}`)(sender);
const compressed =
  (build: Build, encoding: string, compress: (bytes: Buffer) => Buffer): Build =>
  (sender) => {
    const { body, headers, ...request } = build(sender);
    return {
      ...request,
      headers: { ...headers, 'content-encoding': encoding },
      body: compress(body ?? Buffer.alloc(0)),
    };
  };
const quickly = (bytes: Buffer): Buffer =>
  brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } });

const image = (bytes: number): string => `data:image/png;base64,${fill('QUJDREVGR0hJSktM', bytes)}`;
const readImage = (bytes: number): object => ({ type: 'image_url', image_url: { url: image(bytes) } });
const fileOf = (data: string): object[] => [
  { type: 'text', text: 'read' },
  { type: 'file', file: { filename: 'a.pdf', file_data: data } },
];
/** Ten streams of objects of 2 MB, which are zeros in the file. */
const objectStreams = (): string =>
  pdfOf(Object.fromEntries(list(10, (at) => [at + 1, objectStream({ [at + 50]: fill(' ', 2 * megabyte) })])));
const scanned = (): string =>
  pdfOf(Object.fromEntries(list(40, (at) => [at + 1, packed('/Type /XObject', hashes(at, 4_000))])));
/** Incompressible bytes. */
const hashes = (from: number, count: number): string =>
  list(count, (at) => createHash('sha512').update(`${from} ${at}`).digest().toString('latin1')).join('');

const parameters = { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] };
const tool = (at: number, schema: object = parameters): object => ({
  name: `tool_${at}`,
  description: words,
  parameters: schema,
});
const deepSchema = (levels: number): object =>
  levels === 0 ? { type: 'string' } : { type: 'object', properties: { a: deepSchema(levels - 1) } };
const chatTool = (at: number, schema?: object): object => ({ type: 'function', function: tool(at, schema) });

const sealer = createSealer([{ number: 1, secret: sealSecret }]);
const stateOf = (account: string, at: number, length: number): string =>
  encryptTurn(
    sealer,
    { account, model: models.chat },
    {
      state: {
        origin: { dialect: 'responses', channel: 'bench', secret: '', model: models.chat },
        callIds: [`call_${at}`],
        parts: [{ opaque: { text: fill(words, length) } }, { call: 0 }],
      },
      itemId: `rs_${at}`,
    },
  );
const sealedTurns = (count: number, seal: (at: number) => string): object[] => [
  user('go'),
  ...list(count, (at) => [
    { type: 'reasoning', id: `rs_${at}`, summary: [], encrypted_content: seal(at) },
    { type: 'function_call', call_id: `call_${at}`, name: 'look', arguments: '{}' },
    { type: 'function_call_output', call_id: `call_${at}`, output: 'x' },
  ]).flat(),
];
const equalSeals: Build = responsesOf(({ account }) => {
  const seal = stateOf(account, 9_999, 4 * megabyte);
  return { input: sealedTurns(200, () => seal) };
});
const itemOf = (response: string): object => ({
  type: 'item_reference',
  id: `msg_${response.replace('resp-', '')}_in0`,
});

/** By its name in the table. */
export const shapes: Readonly<Record<string, Build>> = {
  'text: one string of 30 MB': saying(() => fill(words, large)),
  'text: source code of 30 MB, escaped': saying(() => fill(source, large * 0.75)),
  'text: Chinese of 30 MB': saying(() => fill('一段很长的对话，', large)),
  'text: 30 MB of \\u escapes': rawChat(() => `"user":"${fill('\\u4e2d', large)}"`),
  'text: 30 MB in 60,000 messages': chatOf(() => ({ messages: list(60_000, () => user(fill(words, 480))) })),
  'text: 30 MB in 100,000 messages, too many': chatOf(() => ({
    messages: list(100_000, () => user(fill(words, 270))),
  })),
  'text: 30,000 parts of one message': saying(() => list(30_000, () => ({ type: 'text', text: words }))),
  'text: 4 MB': saying(() => fill(words, 4 * megabyte)),
  'text: 1 MB': saying(() => fill(words, megabyte)),
  'text: 250 KB': saying(() => fill(words, 250_000)),
  'text: 30 KB, the most that the main thread reads': saying(() => fill(words, 30_000)),
  'text: 60 KB': saying(() => fill(words, 60_000)),
  'text: Responses, one string of 30 MB': responsesOf(() => ({ input: fill(words, large) })),
  'text: Messages, one block of 30 MB': messagesOf(() => ({ messages: [user(fill(words, large))] })),
  'text: Messages, 40,000 blocks': messagesOf(() => ({
    messages: [user(list(40_000, () => ({ type: 'text', text: fill(words, 600) })))],
  })),
  'text: Messages, 30 MB to be counted': messagesOf(
    () => ({ messages: [user(fill(words, large))] }),
    '/v1/messages/count_tokens',
  ),
  'text: 30 MB with an Idempotency-Key': (sender) => ({
    ...saying(() => fill(words, large))(sender),
    headers: { 'idempotency-key': `key-${Math.random()}` },
  }),
  'JSON: malformed at the end of 30 MB': post(
    '/v1/chat/completions',
    `${chat({ messages: [user(fill(words, large))] }).slice(0, -1)},}`,
  ),
  'JSON: not UTF-8 at the end of 30 MB': (sender) => {
    const { body, ...request } = saying(() => fill(words, large))(sender);
    return { ...request, body: Buffer.concat([body ?? Buffer.alloc(0), Buffer.from([0xff])]) };
  },
  'JSON: 30 MB of blanks': rawChat(() => `"user":"x"${fill(' ', large)}`),
  'JSON: 97,000 empty objects in 30 MB': rawChat(
    () => `"x":[${fill('{},', 97_000 * 3)}0],"y":"${fill(words, large - 400_000)}"`,
  ),
  'JSON: 49,000 empty lists in 150 KB': rawChat(() => `"x":[${fill('[],', 49_000 * 3)}0]`),
  'JSON: 10,000 empty lists in 30 KB': rawChat(() => `"x":[${fill('[],', 30_000)}0]`),
  'JSON: 90,000 unknown fields': rawChat(() => list(90_000, (at) => `"f${at}":0`).join(',')),
  'JSON: 2,500 unknown fields in 30 KB': rawChat(() => list(2_500, (at) => `"f${at}":0`).join(',')),
  'JSON: a key 90,000 times': rawChat(() => fill('"metadata":{},', 45_000 * 14).slice(0, -1)),
  'JSON: 450 lists of 190 levels': rawChat(
    () => `"x":[${list(450, () => `${'['.repeat(190)}${']'.repeat(190)}`).join(',')}]`,
  ),
  'JSON: a million levels': rawChat(() => `"x":${'['.repeat(megabyte)}`),
  'JSON: a number of 8 MB': rawChat(() => `"seed":${'9'.repeat(8 * megabyte)}`),
  'JSON: 90,000 numbers of 40 digits': rawChat(() => `"x":[${fill(`${'7'.repeat(40)}e200,`, 45 * 90_000)}0]`),
  'tools: 2,000 of chat': chatOf(() => ({
    messages: [user('hi')],
    tools: list(2_000, (at) => chatTool(at)),
  })),
  'tools: 100 with schemas of 60 levels': chatOf(() => ({
    messages: [user('hi')],
    tools: list(100, (at) => chatTool(at, deepSchema(60))),
  })),
  'tools: 100 namespaces of 40': responsesOf(() => ({
    input: 'hi',
    tools: list(100, (at) => ({
      type: 'namespace',
      name: `space_${at}`,
      description: words,
      tools: list(40, (one) => ({ type: 'function', ...tool(one) })),
    })),
  })),
  'tools: 5,000 of Messages': messagesOf(() => ({
    tools: list(5_000, (at) => ({ name: `tool_${at}`, description: words, input_schema: parameters })),
  })),
  'tools: 7,000 calls and results': chatOf(() => ({
    messages: [
      user('go'),
      ...list(7_000, (at) => [
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: `c${at}`, type: 'function', function: { name: 'look', arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: `c${at}`, content: 'x' },
      ]).flat(),
    ],
  })),
  'files: an image of 30 MB': saying(() => [readImage(large)]),
  'files: 10,000 small images': saying(() => list(10_000, () => readImage(400))),
  'files: a PDF of 20 MB': saying(() => fileOf(dataUrl(scanned()))),
  'files: a PDF of 6,000 pages': saying(() => fileOf(dataUrl(printed(6_000, fill(words, 1_000))))),
  'files: a PDF of 20,000 hidden pages': saying(() => fileOf(dataUrl(savedAgain(20_000)))),
  'files: a PDF that unpacks to 20 MB': saying(() => fileOf(dataUrl(objectStreams()))),
  'files: 20 such PDFs to Messages': messagesOf(() => ({
    messages: [
      user(
        list(20, () => ({
          type: 'document',
          source: { type: 'base64', media_type: 'application/pdf', data: base64(objectStreams()) },
        })),
      ),
    ],
  })),
  'packed: gzip of 30 MB of text': compressed(
    saying(() => fill(words, large)),
    'gzip',
    (bytes) => gzipSync(bytes, { level: 1 }),
  ),
  'packed: br of 30 MB of text': compressed(
    saying(() => fill(words, large)),
    'br',
    quickly,
  ),
  'packed: zstd of 30 MB of text': compressed(
    saying(() => fill(words, large)),
    'zstd',
    zstdCompressSync,
  ),
  'packed: gzip of 1 GB': compressed(post('/v1/chat/completions', ''), 'gzip', () => {
    const part = gzipSync(Buffer.alloc(64 * megabyte, ' '));
    return Buffer.concat(list(16, () => part));
  }),
  'packed: gzip of 190,000 values': compressed(
    rawChat(() => `"x":[${fill('{},', 95_000 * 3)}0],"y":"${fill(words, 8 * megabyte)}"`),
    'gzip',
    (bytes) => gzipSync(bytes),
  ),
  'seals: 200 equal ones of another item': equalSeals,
  'seals: the same in 9 KB of gzip': compressed(equalSeals, 'gzip', (bytes) => gzipSync(bytes, { level: 9 })),
  'seals: 200 of 100 KB': responsesOf(({ account }) => ({
    input: sealedTurns(200, (at) => stateOf(account, at, 100_000)),
  })),
  'seals: 10,000 of another stack': responsesOf(() => ({
    input: sealedTurns(10_000, () => `${sealer.seal('x').split('.')[0]}.9.${'A'.repeat(200)}`),
  })),
  'seals: 40 summaries of 90 KB': responsesOf(({ account }) => ({
    input: [
      user('go'),
      ...list(40, (at) => ({
        type: 'compaction',
        id: `cmp_${at}`,
        encrypted_content: encryptSummary(sealer, account, fill(words, 90_000)),
      })),
    ],
  })),
  'stored: 8 references to items of 1 MB': responsesOf(({ stored }) => ({
    input: [...stored.slice(0, 8).map(itemOf), user('hi')],
  })),
  'stored: after a conversation of 8 MB': responsesOf(({ conversation }) => ({
    input: 'hi',
    previous_response_id: conversation,
  })),
  'stored: its items read': ({ conversation }) => ({
    method: 'GET',
    path: `/v1/responses/${conversation}/input_items?limit=100`,
  }),
  'stored: 2 MB to be stored': responsesOf(() => ({ input: fill(words, 2 * megabyte), store: true })),
  'embeddings: 2,048 words': embeddingsOf(() => ({ input: list(2_048, () => 'word') })),
  'embeddings: 2,048 vectors of 1,024 numbers': embeddingsOf(() => ({
    input: list(2_048, () => 'word'),
    dimensions: 1_024,
  })),
  'embeddings: 290,000 tokens by number': embeddingsOf(() => ({
    input: list(145, () => list(2_000, (at) => at)),
  })),
  'embeddings: 1,000 texts of 900 bytes': embeddingsOf(() => ({
    input: list(1_000, () => fill(words, 900)),
  })),
  'headers: 12 KB of tags': (sender) => ({
    ...saying(() => 'hi')(sender),
    headers: { 'x-relay-tags': fill('team=a,', 12_000) },
  }),
  'headers: a bearer of 12 KB': (sender) => ({
    ...saying(() => 'hi')(sender),
    headers: { authorization: `Bearer sk-${fill('x ', 12_000)}` },
  }),
  'answer: 8 MB in one chunk': saying(() => 'bench large'),
};
