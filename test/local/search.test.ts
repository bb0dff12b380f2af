import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startWatchedStack, type WatchedStack } from '../hardening/watched-stack.ts';
import { startScriptedUpstream, type Script, type ScriptedUpstream } from '../support/scripted-upstream.ts';

let upstream: ScriptedUpstream;
/** Stands in for SearXNG: what the relay asks it comes as a form. */
let searxng: ScriptedUpstream;
let stack: WatchedStack;

beforeAll(async () => {
  [upstream, searxng] = await Promise.all([startScriptedUpstream(), startScriptedUpstream()]);
  const search = { type: 'searxng', endpoint: searxng.endpoint, results: 2, language: 'en' };
  stack = await startWatchedStack({
    environmentsMax: 1,
    rows: [
      ['channels', { id: 'wise', endpoint: upstream.endpoint, models: ['wise'], state: true }],
      ['settings', { name: 'search', value: search }],
    ],
  });
});
afterAll(async () => {
  await stack?.stop();
  await Promise.all([searxng?.close(), upstream?.close()]);
});
beforeEach(() => {
  upstream.forget();
  searxng.forget();
});

const found: Script = (_call, reply) =>
  reply.json(200, {
    results: ['One', 'Two', 'Three'].map((title) => ({
      title,
      url: `https://example.com/${title.toLowerCase()}`,
      content: `What <b>${title}</b> says.`,
    })),
  });

const question = { role: 'user', content: 'Who won the match?' };

/** One answered call: how its search went, and the messages that the upstream saw. */
async function ask(model: string): Promise<{ search: string | undefined; messages: unknown }> {
  const response = await stack.post({ model, messages: [question] });
  expect(response.status).toBe(200);
  expect(await response.text()).toContain('Hello there.');
  const { search } = await stack.logged(response.headers.get('x-request-id') ?? '');
  return { search, messages: upstream.requests.at(-1)?.body['messages'] };
}

describe('a call of a web- model', () => {
  it('has the results in the prompt that the upstream sees, before the question', async () => {
    searxng.script(found);
    const { search, messages } = await ask('web-wise');
    expect(search).toBe('found');
    expect(messages).toEqual([
      {
        role: 'system',
        content: expect.stringContaining('[1] One\nhttps://example.com/one\nWhat One says.'),
      },
      question,
    ]);
    expect(JSON.stringify(messages)).toContain('https://example.com/two');
    expect(JSON.stringify(messages)).not.toContain('https://example.com/three');
    expect(upstream.requests.at(-1)?.body['model']).toBe('wise');
  });

  it('asks SearXNG for the words of the user and nothing else', async () => {
    searxng.script(found);
    await ask('web-wise');
    expect(searxng.requests).toHaveLength(1);
    const [asked] = searxng.requests;
    expect(`${asked?.method} ${asked?.path}`).toBe('POST /v1/search');
    expect(asked?.headers['authorization']).toBeUndefined();
    expect(Object.fromEntries(new URLSearchParams(asked?.text))).toEqual({
      q: question.content,
      format: 'json',
      categories: 'general',
      language: 'en',
    });
  });

  it.each<[string, Script]>([
    ['refuses', (_call, reply) => reply.json(500, { error: 'no' })],
    ['cuts the connection', (_call, reply) => reply.reset()],
    ['talks of something else', (_call, reply) => reply.json(200, { answer: 42 })],
  ])('is answered without results when the provider %s', async (_what, script) => {
    searxng.script(script);
    expect(await ask('web-wise')).toEqual({ search: 'failed', messages: [question] });
  });

  it('is answered without results when the provider says nothing for too long', async () => {
    searxng.script((_call, reply) => reply.hang());
    expect(await ask('web-wise')).toEqual({ search: 'timeout', messages: [question] });
  });

  it('is answered without results when nobody listens', async () => {
    await searxng.close();
    expect(await ask('web-wise')).toEqual({ search: 'failed', messages: [question] });
  });
});

it('a call of the model without web- asks nobody', async () => {
  expect(await ask('wise')).toEqual({ search: undefined, messages: [question] });
  expect(searxng.requests).toEqual([]);
});
