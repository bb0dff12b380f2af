import { describe, expect, it } from 'vitest';
import { carryOutProbe, planProbe } from '../../../shared/operate/channels/probe-channel.ts';
import type { LogSearch } from '../../../shared/operate/operator-ports.ts';
import { Failure } from '../../../shared/operate/plan.ts';
import { countDroppedFields } from '../../../shared/operate/requests/list-requests.ts';
import { operatorRig, type RigOptions } from '../../support/operator-rig.ts';

interface Asked {
  path: string;
  body: Record<string, unknown>;
}
type Reply = { status?: number; body: unknown };
type Answering = (asked: Asked) => Reply;

const row = { id: 'a', endpoint: 'https://api.example.com/v1', models: ['m'], state: true };

const answer = (message: object, finish = 'stop', more: object = usage): Reply => ({
  body: { model: 'm', choices: [{ index: 0, message, finish_reason: finish }], ...more },
});
const usage = { usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } };
const thoughtUnseen = {
  usage: { ...usage.usage, completion_tokens_details: { reasoning_tokens: 1 } },
};
const text = (content: string, finish?: string): Reply => answer({ content }, finish);
const call = (id: string): object => ({ id, type: 'function', function: { name: 't', arguments: '{}' } });
const refusal = (status = 400): Reply => ({ status, body: { error: { message: 'no', type: 'invalid' } } });
const page: Reply = { body: '<!doctype html><title>hello</title>' };

const has = ({ body }: Asked, field: string): boolean => body[field] !== undefined;
const imageIn = ({ body }: Asked): boolean => JSON.stringify(body).includes('image_url');
const isChat = ({ path }: Asked): boolean => path.endsWith('/chat/completions');

/** A chat server that supports everything. */
const able: Answering = (asked) => {
  if (!isChat(asked)) return { status: 404, body: 'Not Found' };
  if (has(asked, 'tools')) return answer({ content: null, tool_calls: [call('a'), call('b')] }, 'tool_calls');
  return text(has(asked, 'response_format') ? '{"status":"fine"}' : 'ready');
};

const where =
  (isAsked: (asked: Asked) => boolean, reply: Reply): Answering =>
  (asked) =>
    isAsked(asked) ? reply : able(asked);
const withoutUsage: Answering = (asked) => {
  const { body, ...reply } = able(asked);
  return { ...reply, body: typeof body === 'object' ? { ...body, usage: undefined } : body };
};
const toolsIn = (asked: Asked): boolean => has(asked, 'tools') && isChat(asked);
const schemaIn = (asked: Asked): boolean => has(asked, 'response_format');
const oneCall = (finish: string): Reply => answer({ content: null, tool_calls: [call('a')] }, finish);

/** Probes an upstream with this behaviour. */
function probed(
  answering: Answering,
  {
    overtaken = [],
    attributes = {},
    more = {},
  }: {
    overtaken?: string[];
    attributes?: Record<string, unknown>;
    more?: RigOptions['rows'];
  } = {},
) {
  const rig = operatorRig({ rows: { channels: [{ ...row, ...attributes }], ...more }, overtaken });
  const asked: Asked[] = [];
  const upstreams = {
    async send({ url, body }: { url: string; body: string }) {
      const one = { path: new URL(url).pathname, body: JSON.parse(body) as Asked['body'] };
      asked.push(one);
      const reply = answering(one);
      const sent = typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body);
      const bytes = (async function* bytes() {
        yield new TextEncoder().encode(sent);
      })();
      return { status: reply.status ?? 200, headers: {}, body: bytes };
    },
  };
  const ports = { ...rig.ports, upstreams };
  const run = async () => carryOutProbe(ports, await planProbe(ports, { id: 'a' }));
  return { run, ports, asked, writes: rig.writes };
}

describe('a probe', () => {
  it('announces its calls and their cost before it sends any', async () => {
    const charges = [{ id: 3, type: 'token-billing', models: ['m'], input: 0.01, output: 0.1 }];
    const priced = probed(able, { more: { charges } });
    const plan = await planProbe(priced.ports, { id: 'a' });
    expect(plan.effect).toEqual([
      'Send up to 12 calls to https://api.example.com/v1, model m',
      'Expected usage: 1800 input and 1800 output tokens (at most 24576 output tokens)',
      "Expected cost: ¥0.198 at your price for customers (rule 3); the provider's price may differ",
    ]);
    expect(plan.questions).toHaveLength(1);
    expect(priced.asked).toEqual([]);
    const perCall = [{ id: 3, type: 'times-billing', models: ['m'], output: 0.5 }];
    const counted = await planProbe(probed(able, { more: { charges: perCall } }).ports, { id: 'a' });
    expect(counted.effect[2]).toContain('Expected cost: ¥6.00 at');
    const free = await planProbe(probed(able).ports, { id: 'a' });
    expect(free.effect[2]).toBe('Expected cost: unknown, m has no price');
  });

  it.each([
    ['no usage in its answers', 'usage_streaming', false, withoutUsage],
    ['a text instead of a tool call', 'tools', false, where(toolsIn, text('no'))],
    ['thinking up to the limit at a tool', 'tools', undefined, where(toolsIn, text('', 'length'))],
    ['a refusal of tools', 'tools', false, where((asked) => has(asked, 'tools'), refusal())],
    ['one call instead of three', 'parallel_tools', false, where(toolsIn, oneCall('tool_calls'))],
    ['one call, cut by the limit', 'parallel_tools', undefined, where(toolsIn, oneCall('length'))],
    ['a text instead of the JSON', 'json_schema', false, where(schemaIn, text('fine'))],
    ['JSON of another schema', 'json_schema', false, where(schemaIn, text('{"state":1}'))],
    ['JSON that is cut', 'json_schema', undefined, where(schemaIn, text('{"sta', 'length'))],
    ['a rejection of the schema', 'json_schema', false, where(schemaIn, refusal(422))],
    ['a rejection of the picture', 'images', false, where(imageIn, refusal())],
    ['a rejection of the picture as unknown', 'images', false, where(imageIn, refusal(404))],
    ['a failure at the picture', 'images', undefined, where(imageIn, refusal(500))],
    ['a broken answer to the picture', 'images', undefined, where(imageIn, { body: 'odd' })],
    ['an error in the answer', 'images', undefined, where(imageIn, { body: { error: { message: 'no' } } })],
  ] satisfies [string, string, boolean | undefined, Answering][])(
    'takes %s as %s: %s, and finds nothing else missing',
    async (_case, capability, value, answering) => {
      const { can } = await probed(answering).run();
      const { [capability]: found, ...others } = can as Record<string, unknown>;
      expect(found).toBe(value);
      const rest = Object.entries(others).filter(
        ([name]) => !(capability === 'tools' && name === 'parallel_tools'),
      );
      expect(rest.filter(([, each]) => each === false)).toEqual([]);
      expect(Object.keys(others)).toContain('system_anywhere');
    },
  );

  it('sends at most a dozen calls, and reports the efforts that it did not try', async () => {
    const { run, asked } = probed((one) => (imageIn(one) ? refusal() : able(one)));
    expect(await run()).toMatchObject({ sent: 12, unasked: ['max', 'minimal'], can: { images: false } });
    expect(asked).toHaveLength(12);
  });

  it('does not report missing usage if the row does not ask for it', async () => {
    const { can } = await probed(withoutUsage, { attributes: { params: { include_usage: false } } }).run();
    expect(can).not.toHaveProperty('usage_streaming');
    expect(can.tools).toBe(true);
  });

  it.each([
    ['web pages', () => page, /no known dialect\. chat: status 200: a web page .*messages: .*responses: /],
    ['a key that is refused', () => refusal(401), /rejects the API key \(chat: status 401/],
    [
      'an empty account',
      () => refusal(402),
      /nothing was written: your account with the provider has no credit left \(status 402/,
    ],
    [
      'an empty account, as a 429',
      () => ({ status: 429, body: { error: { code: 'insufficient_quota', message: 'x' } } }),
      /has no credit left/,
    ],
    [
      'too many requests',
      () => refusal(429),
      /nothing was written: the upstream is unavailable \(status 429/,
    ],
    [
      'an upstream that is down',
      () => refusal(503),
      /nothing was written: the upstream is unavailable \(status 503/,
    ],
    ['refusals of everything', () => refusal(), /no known dialect\. chat: status 400: .*no/],
  ] satisfies [string, Answering, RegExp][])('writes nothing on %s', async (_case, answering, message) => {
    const { run, writes } = probed(answering);
    await expect(run()).rejects.toThrow(message);
    await expect(run()).rejects.toThrow(/^nothing was written: /);
    expect(writes).toEqual([]);
  });

  it('counts the fields that customers sent but the channel did not receive', async () => {
    const { ports } = probed(able);
    const asked: LogSearch[] = [];
    const line = (...dropped: string[]) => ({ atMs: 0, fields: { dropped } });
    const names = Array.from({ length: 12 }, (_, i) => `q${i}`);
    const log = {
      ...ports.log,
      source: async () => ({ groups: [] }),
      search: async (search: LogSearch) => {
        asked.push(search);
        return { lines: [line('top_a', 'made_up'), line('made_up'), line(...names)], scannedBytes: 0 };
      },
    };
    const found = await countDroppedFields({ ...ports, log }, 'a');
    expect(found?.slice(0, 2)).toEqual([
      { name: 'made_up', calls: 2 },
      { name: 'top_a', calls: 1 },
    ]);
    expect(found).toHaveLength(10);
    expect(asked[0]?.conditions).toContainEqual({ field: 'channel', isOneOf: ['a'] });
    const denied = { ...log, search: async () => Promise.reject(new Failure('no rights')) };
    expect(await countDroppedFields({ ...ports, log: denied }, 'a')).toBeUndefined();
  });

  it.each([
    [
      'a key that is refused by now',
      401,
      /nothing was written: the upstream has started to reject the API key/,
    ],
    ['too many requests', 429, /is unavailable/],
    ['an empty account', 402, /no credit left/],
  ])('writes nothing when it meets %s on the way', async (_case, status, message) => {
    const { run, writes } = probed((asked) => (imageIn(asked) ? refusal(status) : able(asked)));
    await expect(run()).rejects.toThrow(message);
    expect(writes).toEqual([]);
  });

  it.each([
    ['in words', answer({ content: 'ready', reasoning_content: 'Hm.' })],
    ['unseen', answer({ content: 'ready' }, 'stop', thoughtUnseen)],
  ])('does not count the effort none when the model thinks anyway, %s', async (_how, thinking) => {
    const { can } = await probed(where((asked) => has(asked, 'reasoning_effort'), thinking)).run();
    expect(can.efforts).toContain('low');
    expect(can.efforts).not.toContain('none');
    expect((await probed(able).run()).can.efforts).toContain('none');
  });

  it('reports that an embedding model holds no conversations, and writes nothing', async () => {
    const vectors: Answering = ({ path }) =>
      path.endsWith('/embeddings')
        ? { body: { object: 'list', data: [{ index: 0, embedding: [1, 2] }], model: 'm', ...usage } }
        : { status: 404, body: 'Not Found' };
    const { run, asked, writes } = probed(vectors);
    await expect(run()).rejects.toThrow(
      'nothing was written: this is an embedding model, and a probe needs a chat model; use `channel test`',
    );
    expect(asked.length).toBeLessThanOrEqual(12);
    expect(writes).toEqual([]);
  });

  it('accepts an address without a path that works', async () => {
    const attributes = { endpoint: 'https://api.example.com' };
    expect((await probed(able, { attributes }).run()).warnings).toEqual([]);
  });

  it('never overwrites a row that was changed meanwhile', async () => {
    const { run } = probed(able, { overtaken: ['update channels a'] });
    await expect(run()).rejects.toThrow(
      'nothing was written: someone else changed the channel in the meantime; re-run the command',
    );
  });

  it('finds the one dialect with a correct address and key, and warns before the first call', async () => {
    const guarded: Answering = (asked) => (isChat(asked) ? able(asked) : refusal(401));
    const { can, warnings } = await probed(guarded, { attributes: { type: 'anthropic' } }).run();
    expect(can).toMatchObject({ tools: true, dialects: ['chat'] });
    expect(warnings[0]).toContain('dialect: is messages, but the probe found only chat');
  });
});
