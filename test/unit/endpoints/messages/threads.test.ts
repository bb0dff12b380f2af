/** Message threads: the vendor stores the conversation, and the relay keeps only what the client's id contains. */
import { describe, expect, it } from 'vitest';
import { createSealer } from '../../../../shared/adapters/system/node-ports.ts';
import { createThreadId } from '../../../../shared/relay/state/thread-ids.ts';
import { BillingRig, byTokens, yuan, type BillingOptions } from '../../../support/billing-rig.ts';
import { demoKey, keyRow, type Answer } from '../../../support/core-rig.ts';
import { ThreadUpstream } from '../../../support/thread-upstream.ts';
import type { UpstreamReply, UpstreamRequest } from '../../../../shared/upstreams/exchange.ts';

type Json = Record<string, unknown>;

const path = '/v1/messages';
const otherKey = 'sk-other';
const beta = 'message-threads-2026-08-12';
const claude = { id: 'claude', type: 'anthropic', endpoint: 'https://claude.test/v1', secret: 'key' };
const second = { ...claude, id: 'second', endpoint: 'https://second.test/v1' };
const chat = { id: 'chat', type: 'openai', endpoint: 'https://chat.test/v1' };
const create = { type: 'create' };
const continued = (previous_message_id: string) => ({ type: 'continue', previous_message_id });
const said = (content: string) => [{ role: 'user', content }];
const secret = said('my secret word is PELICAN');
const question = said('what is my secret word?');
const tools = [{ name: 'f', input_schema: { type: 'object' } }];

const bodyOf = (answer: Pick<Answer, 'text'>) => JSON.parse(answer.text) as Json;
const codeOf = (answer: Answer): unknown => {
  const { error } = bodyOf(answer) as { error: { details: Json } };
  return [answer.status, error.details['error_code']];
};

class ThreadRig {
  readonly vendor = new ThreadUpstream();
  /** Replaces the next answer of a channel. */
  fails: { host: string; status: number } | undefined;
  readonly rig: BillingRig;

  constructor(options: BillingOptions = {}, grant = yuan) {
    this.rig = new BillingRig({
      channels: [claude],
      keys: {
        [demoKey]: { row: keyRow() },
        [otherKey]: { row: keyRow({ hash: 'b'.repeat(64), account: 'other' }) },
      },
      send: async (request) => this.#reply(request),
      ...options,
    }).granted(grant);
  }

  async #reply({ url, body }: UpstreamRequest): Promise<UpstreamReply> {
    const isFailing = this.fails !== undefined && url.includes(this.fails.host);
    const reply = isFailing
      ? { status: this.fails?.status ?? 500, body: { error: { type: 'overloaded_error', message: 'no' } } }
      : this.vendor.answer(JSON.parse(body) as Json);
    const bytes = new TextEncoder().encode(JSON.stringify(reply.body));
    const pieces = async function* () {
      yield bytes;
    };
    return { status: reply.status, headers: { 'content-type': 'application/json' }, body: pieces() };
  }

  ask(more: Json, key = demoKey): Promise<Answer> {
    const body = { model: 'm', max_tokens: 100, ...more };
    return this.rig.call(body, { path, headers: { 'x-api-key': key, 'anthropic-beta': beta } });
  }

  /** The id of the answer that starts a thread. */
  async begin(more: Json = {}): Promise<string> {
    return String(bodyOf(await this.ask({ messages: secret, thread: create, ...more }))['id']);
  }
}

const lastSent = ({ rig }: ThreadRig): Json => rig.sent.at(-1)?.json ?? {};
const idIn = ({ text }: Answer): string => /"id":"(msg_relay1[^"]+)"/.exec(text)?.[1] ?? '';

describe('a message thread', () => {
  it("continues by the client's ids, turn after turn, streamed or not", async () => {
    const threads = new ThreadRig();
    let id = await threads.begin();
    for (const stream of [false, true, false]) {
      const answer = await threads.ask({ messages: question, thread: continued(id), stream });
      expect([answer.status, answer.text]).toEqual([200, expect.stringContaining('PELICAN')]);
      expect(lastSent(threads)).toMatchObject({
        messages: question,
        thread: { type: 'continue', previous_message_id: expect.stringMatching(/^msg_vendor\d$/) },
      });
      id = idIn(answer);
    }
  });

  it("hides the vendor's ids, and its own id names neither vendor nor account", async () => {
    const id = await new ThreadRig().begin();
    expect(id).toMatch(/^msg_relay1\.[\w.-]+$/);
    expect(Buffer.from(id.split('.').at(-1) ?? '', 'base64url').toString('latin1')).not.toMatch(
      /vendor|acme|claude/,
    );
  });

  it('keeps the choice among tools that only the vendor knows', async () => {
    const threads = new ThreadRig();
    const choice = { tools, tool_choice: { type: 'tool', name: 'f' } };
    const id = await threads.begin(choice);
    const { tool_choice } = choice;
    const answer = await threads.ask({ messages: question, thread: continued(id), tool_choice });
    expect([answer.status, lastSent(threads)['tool_choice']]).toEqual([200, tool_choice]);
  });

  it('resumes an unfinished turn without a message', async () => {
    const threads = new ThreadRig();
    const id = await threads.begin();
    expect((await threads.ask({ messages: [], thread: continued(id) })).status).toBe(200);
    expect((await threads.ask({ messages: [] })).status).toBe(400);
  });

  it('continues with search results beside the question, because its system text cannot change', async () => {
    const provider = {
      type: 'tavily',
      endpoint: 'https://search.test',
      results: 5,
      price: 0,
      cost: 0,
    } as const;
    const found = { title: 'Found', url: 'https://a.test', text: 'The ferry is late.' };
    const search = () => Promise.resolve([found]);
    const threads = new ThreadRig({ settings: { search: provider }, search }, 1_000n * yuan);
    const model = 'web-m';
    const id = await threads.begin({ model });
    const answer = await threads.ask({ model, messages: question, thread: continued(id) });
    expect([answer.status, answer.text]).toEqual([200, expect.stringContaining('PELICAN')]);
    expect(JSON.stringify(lastSent(threads)['messages'])).toContain(found.text);
  });

  it('uses an ordinary id for an answer that nobody stores', async () => {
    const answer = await new ThreadRig().ask({ messages: secret });
    expect(bodyOf(answer)['id']).toMatch(/^msg_01call\d+$/);
  });
});

describe('the id of an answer', () => {
  it.each<[what: string, change: (id: string) => string]>([
    ['that was changed', (id) => id.slice(0, 90) + (id[90] === 'A' ? 'B' : 'A') + id.slice(91)],
    ['that was cut', (id) => id.slice(0, -20)],
    ["in the vendor's form", () => 'msg_vendor1'],
    ['that is very long', (id) => id + 'A'.repeat(3_000)],
    ['that is empty', () => ''],
    ['of hostile text', () => 'msg_relay1.0.\u0000../../x'],
  ])('%s continues nothing, and nothing is sent', async (_what, change) => {
    const threads = new ThreadRig({}, 1_000n * yuan);
    const id = await threads.begin();
    const answer = await threads.ask({ messages: question, thread: continued(change(id)) });
    expect(codeOf(answer)).toEqual([404, 'thread_not_found']);
    expect(threads.rig.sent).toHaveLength(1);
    expect(threads.rig.open).toEqual([]);
  });

  it("of another tenant's conversation continues nothing, and theirs is unaffected", async () => {
    const threads = new ThreadRig();
    threads.rig.quotas.grant('other', yuan);
    const id = await threads.begin();
    const stolen = await threads.ask({ messages: question, thread: continued(id) }, otherKey);
    expect(codeOf(stolen)).toEqual([404, 'thread_not_found']);
    expect((await threads.ask({ messages: question, thread: continued(id) })).status).toBe(200);
  });

  it('is rejected by the vendor in its own words when it is replayed', async () => {
    const threads = new ThreadRig();
    const id = await threads.begin();
    await threads.ask({ messages: question, thread: continued(id) });
    const again = await threads.ask({ messages: question, thread: continued(id) });
    expect(codeOf(again)).toEqual([400, 'thread_already_continued']);
  });

  it("of a thread that the vendor has forgotten gets the vendor's rejection", async () => {
    const threads = new ThreadRig();
    const id = await threads.begin();
    threads.vendor.expire();
    expect(codeOf(await threads.ask({ messages: question, thread: continued(id) }))).toEqual([
      404,
      'thread_not_found',
    ]);
  });

  it.each(['', 'x'.repeat(129), 'a b', '\u0000'])(
    'is not derived from an invalid id of the vendor: %j',
    (id) => {
      const sealer = createSealer([{ number: 1, secret: 'seal' }]);
      const origin = { dialect: 'messages', channel: 'c', secret: '', model: 'm' };
      expect(createThreadId(sealer, 'acme', { id, origin, tokens: 1, tokensMax: 2 })).toBeUndefined();
    },
  );
});

describe('a thread and the candidates of its model', () => {
  it('stays with the channel that holds it', async () => {
    const threads = new ThreadRig({ channels: [claude, second] });
    let id = await threads.begin();
    const first = threads.rig.sent[0]?.url;
    for (let turn = 0; turn < 6; turn += 1)
      id = idIn(await threads.ask({ messages: said(`turn ${turn}`), thread: continued(id) }));
    expect(new Set(threads.rig.sent.map(({ url }) => url))).toEqual(new Set([first]));
  });

  it('is not found when its channel fails and another one exists, so that its client resends it', async () => {
    const threads = new ThreadRig({ channels: [claude, second] });
    const id = await threads.begin();
    const host = new URL(threads.rig.sent[0]?.url ?? '').host;
    threads.fails = { host, status: 529 };
    expect(codeOf(await threads.ask({ messages: question, thread: continued(id) }))).toEqual([
      404,
      'thread_not_found',
    ]);
    expect((await threads.ask({ messages: [...secret, ...question], thread: create })).status).toBe(200);
  });

  it('reports the failure when no other channel exists', async () => {
    const threads = new ThreadRig();
    const id = await threads.begin();
    threads.fails = { host: 'claude.test', status: 529 };
    expect((await threads.ask({ messages: question, thread: continued(id) })).status).toBe(529);
  });

  it.each<[what: string, channels: Json[]]>([
    ['its secret changed', [{ ...claude, secret: 'other' }]],
    ['another model is behind its name', [{ ...claude, mapper: { m: 'n' } }]],
    ['its channel is gone', [second]],
  ])('is not continued when %s since', async (_what, channels) => {
    const before = new ThreadRig();
    const id = await before.begin();
    const after = new ThreadRig({ channels });
    expect(codeOf(await after.ask({ messages: question, thread: continued(id) }))).toEqual([
      404,
      'thread_not_found',
    ]);
    expect(after.rig.sent).toEqual([]);
  });

  it.each<[what: string, channel: Json, model?: string]>([
    ['whose row disables threads', { ...claude, params: { threads: false } }],
    ['of another form', chat],
    ['of another vendor with this form', { ...claude, models: ['kimi-k3'] }, 'kimi-k3'],
    ['of a type without known threads', { ...chat, dialect: 'messages' }],
  ])('is neither started nor continued at a channel %s', async (_what, channel, model = 'm') => {
    const threads = new ThreadRig({ channels: [channel] });
    const begun = await threads.ask({ model, messages: secret, thread: create });
    expect(begun.headers['x-relay-dropped']).toContain('thread');
    expect(lastSent(threads)).not.toHaveProperty('thread');
    const answer = await threads.ask({ model, messages: question, thread: continued('msg_01call') });
    expect(codeOf(answer)).toEqual([400, 'thread_unsupported_request']);
    expect(threads.rig.sent).toHaveLength(1);
  });

  it('is started when only the row says that its vendor holds threads', async () => {
    const threads = new ThreadRig({
      channels: [{ ...chat, dialect: 'messages', params: { threads: true } }],
    });
    const id = await threads.begin();
    expect((await threads.ask({ messages: question, thread: continued(id) })).status).toBe(200);
  });
});

describe('the money of a thread', () => {
  const long = said(`my secret word is PELICAN. ${'The ferry leaves at seven. '.repeat(2_000)}`);
  const costOf = ({ input, output }: { input: number; output: number }): bigint =>
    BigInt(input) * 1_000_000n + BigInt(output) * 2_000_000n;

  it('is charged for exactly what the vendor read', async () => {
    const threads = new ThreadRig({ charges: [byTokens] }, 1_000n * yuan);
    let id = await threads.begin({ messages: long });
    for (const stream of [true, false, true])
      id = idIn(await threads.ask({ messages: question, thread: continued(id), stream }));
    const due = threads.vendor.answers.map(costOf).reduce((sum, each) => sum + each, 0n);
    expect(threads.vendor.answers.at(-1)?.input).toBeGreaterThan(17_000);
    expect([threads.rig.item?.spent, threads.rig.open]).toEqual([due, []]);
    expect(threads.rig.events.filter(({ name }) => name === 'charged_above_reserve')).toEqual([]);
    expect(threads.rig.logged.map(({ usage_flag }) => usage_flag)).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });

  it('is reserved for what the vendor reads, though the request is short', async () => {
    const threads = new ThreadRig({ charges: [byTokens] }, 1_000n * yuan);
    const id = await threads.begin({ messages: long });
    const [{ input } = { input: 0 }] = threads.vendor.answers;
    const held: bigint[] = [];
    const reserve = threads.rig.quotas.reserve.bind(threads.rig.quotas);
    threads.rig.quotas.reserve = (write) => {
      held.push(write.entry.amount);
      return reserve(write);
    };
    await threads.ask({ messages: question, thread: continued(id) });
    expect(held).toEqual([
      expect.toSatisfy((amount: bigint) => amount >= costOf({ input: input + 5, output: 100 })),
    ]);
  });

  it('is checked before sending: a balance too small for the stored turns rejects the call', async () => {
    const threads = new ThreadRig({ charges: [byTokens] }, 1_000n * yuan);
    const id = await threads.begin({ messages: long });
    threads.rig.quotas.grant('acme', yuan - (threads.rig.item?.available ?? 0n));
    const answer = await threads.ask({ messages: question, thread: continued(id) });
    expect([answer.status, threads.rig.sent.length]).toEqual([402, 1]);
  });

  it('is estimated including the stored turns when the vendor reports nothing', async () => {
    const threads = new ThreadRig({ charges: [byTokens] }, 1_000n * yuan);
    const id = await threads.begin({ messages: long });
    const [{ input } = { input: 0 }] = threads.vendor.answers;
    const spent = threads.rig.item?.spent ?? 0n;
    const answer = threads.vendor.answer.bind(threads.vendor);
    threads.vendor.answer = (body) => {
      const reply = answer(body);
      return { ...reply, body: { ...reply.body, usage: undefined } };
    };
    await threads.ask({ messages: question, thread: continued(id) });
    const charge = (threads.rig.item?.spent ?? 0n) - spent;
    expect(charge).toBeGreaterThanOrEqual(costOf({ input, output: 1 }));
    // The relay's id has some 100 tokens as text, but the vendor reads none of it.
    expect(charge).toBeLessThan(costOf({ input: input + 40, output: 10 }));
  });
});
