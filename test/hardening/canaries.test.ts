import { beforeAll, describe, expect, test } from 'vitest';
import type { Script, ScriptedUpstream } from '../support/scripted-upstream.ts';
import { chunk, toolDelta, usageChunk } from '../support/upstream-frames.ts';
import { frames, silence } from '../support/upstream-scripts.ts';
import { canaries, fullRequest } from './canaries.ts';
import { hardeningStack, modelOf } from './hardening-stack.ts';
import type { CountedStack } from './watched-stack.ts';

let upstream: ScriptedUpstream;
let stack: CountedStack;

beforeAll(async () => {
  ({ upstream, stack } = await hardeningStack());
});

/** Every error answer that clients got, including headers. */
const answered: string[] = [];
const requestIds: string[] = [];

async function read(response: Response): Promise<string> {
  const text = await response.text();
  const heads = JSON.stringify([...response.headers]);
  if (response.status >= 400 || text.includes('"error"'))
    answered.push(`${response.status} ${heads} ${text}`);
  expect(heads).not.toContain(canaries.replyHeader);
  if (response.headers.has('x-request-id')) requestIds.push(response.headers.get('x-request-id') ?? '');
  return text;
}

const clientHeaders = {
  authorization: `Bearer ${canaries.key}`,
  cookie: `session=${canaries.cookie}`,
  'x-custom': canaries.header,
  'user-agent': canaries.header,
};

async function post(
  body: object | string,
  { headers = {}, path = '/v1/chat/completions' }: { headers?: Record<string, string>; path?: string } = {},
): Promise<string> {
  return read(
    await fetch(`${stack.origin}${path}?token=${canaries.query}`, {
      method: 'POST',
      headers: { ...clientHeaders, ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    }),
  );
}

/** An upstream's error that reveals what it must not: secret, addresses, keys. */
const talkative = (): object => ({
  error: {
    message:
      `${canaries.errorMessage}: key ${canaries.secret} at ${upstream.endpoint}/chat (localhost:9, 10.1.2.3:80, ` +
      'https://api.hidden-upstream.example/v1, hidden-upstream.internal, sk-proj-abcdefghijkl)',
    type: 'upstream_type',
    param: canaries.secret,
    code: `${canaries.errorCode} with ${canaries.secret}`,
  },
});

const replyHeaders = { 'set-cookie': canaries.replyHeader, 'x-upstream': canaries.replyHeader };
const words = chunk({ role: 'assistant', content: canaries.answer, reasoning_content: canaries.reasoning });
const call = toolDelta(0, {
  id: 'call_2',
  type: 'function',
  function: { name: canaries.toolName, arguments: JSON.stringify({ city: canaries.answerArgument }) },
});

/** Answers with 200 and its own headers. */
const under200 =
  (...list: (() => object | string)[]): Script =>
  async (_call, reply) => {
    reply.head(200, { 'content-type': 'text/event-stream', ...replyHeaders });
    await reply.data(...list.map((item) => item()));
    reply.end();
  };
const withStatus =
  (status: number): Script =>
  (_call, reply) =>
    reply.json(status, talkative(), replyHeaders);
const page =
  (status: number): Script =>
  (_call, reply) => {
    reply.head(status, { 'content-type': 'text/html', ...replyHeaders });
    reply.end(`<html><title>${canaries.html}</title></html>`);
  };

const failures: [string, Script][] = [
  ...[400, 401, 402, 403, 404, 413, 422, 429, 500, 503].map((status): [string, Script] => [
    `a talkative ${status}`,
    withStatus(status),
  ]),
  ['a page as 200', page(200)],
  ['a page as 404', page(404)],
  ['a page as 502', page(502)],
  ['junk', (_call, reply) => reply.end(`${canaries.junk}\n\ndata: {${canaries.junk}\n\n`)],
  ['broken JSON', (_call, reply) => reply.end(`{"choices":"${canaries.junk}`)],
  ['an error in JSON under 200', withStatus(200)],
  ['an error as the first frame', under200(talkative)],
  ['an error in mid-stream', under200(() => words, talkative)],
  ['an early end', under200(() => words)],
  ['a reset', (_call, reply) => reply.reset()],
  [
    'a redirect',
    (_call, reply) => {
      reply.head(302, { location: `http://127.0.0.1:1/${canaries.replyHeader}` });
      reply.end();
    },
  ],
];

describe('canaries are driven through', () => {
  test.each([true, false])('an answer with text and a tool call, stream %s', async (stream) => {
    upstream.script(frames(words, chunk(call), chunk({}, 'tool_calls'), usageChunk()));
    const text = await post(fullRequest('plain', stream));
    expect(text).toContain(canaries.answer);
    expect(text).toContain(canaries.answerArgument);
    const sent = upstream.requests.at(-1);
    expect(sent?.headers['authorization']).toBe(`Bearer ${canaries.secret}`);
    for (const name of ['system', 'prompt', 'image', 'argument', 'result'] as const)
      expect(sent?.text).toContain(canaries[name]);
    for (const name of ['key', 'header', 'cookie', 'query', 'endUser', 'unknownField'] as const)
      expect(JSON.stringify([sent?.headers, sent?.path, sent?.text])).not.toContain(canaries[name]);
  });

  describe.each([true, false])('failures of the upstream, stream %s', (stream) => {
    test.each(failures)('%s', async (_name, script) => {
      upstream.script(script);
      expect(await post(fullRequest(modelOf('patient'), stream))).toContain('"error"');
    });

    test.each(['quick', 'refusing', 'no-secret'] as const)('a channel of kind %s', async (kind) => {
      upstream.script(silence);
      expect(await post(fullRequest(modelOf(kind), stream))).toContain('"error"');
    });
  });

  test.each<[string, () => Promise<string>]>([
    ['an unknown key', () => post('{}', { headers: { authorization: `Bearer ${canaries.unknownKey}` } })],
    ['a malformed key', () => post('{}', { headers: { authorization: `Bearer ${canaries.malformedKey}` } })],
    ['another scheme', () => post('{}', { headers: { authorization: `Basic ${canaries.malformedKey}` } })],
    ['an unknown path', () => post('{}', { path: `/v1/chat/${canaries.path}` })],
    ['a path of nobody', () => post('{}', { path: `/${canaries.path}` })],
    ['broken JSON', () => post(`{"${canaries.brokenJson}": ${canaries.brokenJson}`)],
    ['a wrong value', () => post({ ...fullRequest('plain', true), temperature: canaries.wrongValue })],
    ['a wrong role', () => post({ model: 'plain', messages: [{ role: canaries.wrongValue }] })],
    ['an unknown model', () => post({ ...fullRequest('plain', true), model: 'nobody-serves-this' })],
    ['a missing model', () => post({ ...fullRequest(`${canaries.wrongValue} !`, true) })],
  ])('%s', async (_name, refusedCall) => {
    expect(JSON.parse(await refusedCall())).toHaveProperty('error.code');
  });

  test('a client that leaves', async () => {
    const left = Promise.withResolvers<void>();
    upstream.script(async (_call, reply) => {
      await reply.data(words);
      await left.promise;
      await reply.data(words, chunk({}, 'stop'), usageChunk(), '[DONE]');
      reply.end();
    });
    const leaving = new AbortController();
    const response = await stack.post(fullRequest('plain', true), {
      signal: leaving.signal,
      headers: clientHeaders,
    });
    const id = response.headers.get('x-request-id') ?? '';
    requestIds.push(id);
    leaving.abort();
    left.resolve();
    expect(await stack.logged(id)).toHaveProperty('model', 'plain');
  });

  test.each([
    [500, 'InternalServerError', 503],
    [400, 'ValidationException', 500],
    [400, 'ResourceNotFoundException', 500],
  ])('a store that answers %d %s', async (status, kind, seen) => {
    stack.store.failWith({
      status,
      body: { __type: kind, message: canaries.store, Message: canaries.store },
    });
    const key = `${canaries.unknownKey}-${kind}`;
    const text = await post(fullRequest('plain', true), { headers: { authorization: `Bearer ${key}` } });
    stack.store.failWith(undefined);
    expect(answered.at(-1)).toMatch(new RegExp(`^${seen} `));
    expect(JSON.parse(text)).toHaveProperty('error.type', 'internal_error');
  });
});

describe('afterwards', () => {
  const all = Object.entries(canaries);

  test('no log line contains any of them, and every line has the log format', async () => {
    // One environment wrote all of them, in this order.
    await stack.logged(requestIds.at(-1) ?? '');
    const lines = stack.lines.filter((line) => !/^environment \w+#\d+ pid \d+$/.test(line));
    expect(lines.length).toBeGreaterThan(60);
    expect(lines.filter((line) => line.includes('"message":"fault"'))).not.toEqual([]);
    for (const logged of lines) {
      expect(logged).toMatch(/^\[\w+\] \{.*\}$/);
      // The end user is logged on purpose, in a separate field.
      const line = logged.replaceAll(`"end_user":"${canaries.endUser}"`, '');
      expect(all.filter(([, canary]) => line.includes(canary))).toEqual([]);
      expect(line).not.toMatch(/canary|hidden-upstream|127\.0\.0\.1/);
    }
  });

  test('no client gets a secret, an address or the text of a failure', () => {
    expect(answered.length).toBeGreaterThan(50);
    const { port } = new URL(upstream.endpoint);
    for (const text of answered) {
      for (const name of ['key', 'secret', 'store', 'html', 'junk', 'replyHeader'] as const)
        expect(text).not.toContain(canaries[name]);
      expect(text).not.toMatch(/hidden-upstream|sk-proj|10\.1\.2\.3|localhost|<html/);
      expect(text).not.toContain(`:${port}`);
      expect(text).not.toMatch(/node_modules|\.mjs|at \w+ \(/);
    }
  });

  test('the text of an upstream reaches a client only if the upstream rejected the request itself', () => {
    const withWords = answered
      .filter((text) => text.includes(canaries.errorMessage))
      .map((text) => text.slice(0, 3));
    expect([...new Set(withWords)].toSorted()).toEqual(['400', '404', '413', '422']);
  });
});
