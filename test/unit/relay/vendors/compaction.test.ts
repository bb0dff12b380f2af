/** Conversations that Codex compacts, on every double: the facts that survive, the requests and the charges. */
import { isDeepStrictEqual } from 'node:util';
import { describe, expect, it } from 'vitest';
import { verifyPayload } from '../../../../infra/local/vendors/vendor.ts';
import { asRecord, recordsIn } from '../../../../shared/wire/json.ts';
import type { RequestLog } from '../../../../shared/relay/ports/telemetry.ts';
import { byTokens } from '../../../support/billing-rig.ts';
import { demoKey, frames, keyRow, type Answer } from '../../../support/core-rig.ts';
import { vendorModels, VendorRig } from '../../../support/vendor-rig.ts';

type Json = Record<string, unknown>;

const otherKey = 'sk-other';
const granted = 1_000_000_000_000n;
const keys = { [demoKey]: { row: keyRow() }, [otherKey]: { row: keyRow({ account: 'stranger' }) } };
const tools = [{ type: 'function', name: 'exec', strict: false, parameters: { type: 'object' } }];
const include = ['reasoning.encrypted_content'];

const user = (text: string): Json => ({
  type: 'message',
  role: 'user',
  content: [{ type: 'input_text', text }],
});

/** Removes the fields that Codex omits from the items that it sends back. */
const sentBack = ({ id: _id, status: _status, ...item }: Json): Json => item;
const ofType = (items: readonly Json[], type: string): Json[] =>
  items.filter((item) => item['type'] === type);

/** The text that a model reads in a request: an encrypted item of OpenAI's is decrypted as OpenAI does. */
const read = (body: unknown): string =>
  JSON.stringify(body).replaceAll(
    /"gAAAA([^"]+)"/g,
    (_, content: string) => `"${String(verifyPayload(content)?.['text'])}"`,
  );

/** This vendor drops reasoning when the items before it have changed. */
const strict = { vendor: 'openai', model: 'gpt-6.2-sol', row: { type: 'openai', dialect: 'responses' } };
const known = [...vendorModels, strict];

/** Codex's two ways: the path, and the item at the end of the input. */
const ways = ['path', 'item, streamed', 'item'] as const;

class Session {
  readonly rig: VendorRig;
  input: Json[] = [];
  readonly answers: Answer[] = [];
  readonly #named: Json;
  #posts = 0;

  constructor(models: readonly string[], options: ConstructorParameters<typeof VendorRig>[1] = {}) {
    const served = models.flatMap((model) => known.filter((one) => one.model === model));
    this.rig = new VendorRig(served, { keys, charges: [{ ...byTokens, models: ['m', 'n'] }], ...options });
    this.rig.core.quotas.grant('acme', granted);
    this.rig.core.quotas.grant('stranger', granted);
    // The strict server rejects this field.
    this.#named = models.some((model) => model.startsWith('picky')) ? {} : { prompt_cache_key: 'session' };
  }

  async ask(body: Json, path = '/v1/responses', key = demoKey): Promise<Json> {
    const id = `01compact${String((this.#posts += 1)).padStart(17, '0')}`;
    const headers = { authorization: `Bearer ${key}` };
    const shared = { model: 'm', instructions: 'Work.', tools, store: false, ...this.#named };
    const answer = await this.rig.core.post({ ...shared, ...body }, { path, id, headers });
    this.answers.push(answer);
    if (answer.status !== 200) throw new Error(answer.text);
    if (body['stream'] !== true) return asRecord(JSON.parse(answer.text));
    const events = frames(answer.text.replaceAll(/^event: .*\n/gm, '')).map(asRecord);
    const response = asRecord(events.at(-1)?.['response']);
    const done = events.flatMap(({ type, item }) => (type === 'response.output_item.done' ? [item] : []));
    if (!isDeepStrictEqual(done, response['output'])) throw new Error(answer.text);
    return response;
  }

  /** A question with calls of its tool, until the answer. */
  async work(text: string, results: string): Promise<void> {
    this.input.push(user(text));
    for (let turn = 0; turn < 4; turn += 1) {
      const { output } = await this.ask({ input: this.input, include, stream: turn % 2 === 0 });
      const items = recordsIn(output);
      this.input.push(...items.map(sentBack));
      const calls = ofType(items, 'function_call');
      if (calls.length === 0) return;
      for (const { call_id: callId } of calls)
        this.input.push({ type: 'function_call_output', call_id: callId, output: results });
    }
  }

  /** Continues from the compaction item and the user's messages, which the path repeats and Codex keeps otherwise. */
  async compact(way: (typeof ways)[number]) {
    const isPath = way === 'path';
    const trigger = isPath ? [] : [{ type: 'compaction_trigger' }];
    const body = { input: [...this.input, ...trigger], stream: way === 'item, streamed' };
    const compacted = await this.ask(body, isPath ? '/v1/responses/compact' : undefined);
    const output = recordsIn(compacted['output']);
    const own = this.input.filter(({ role }) => role === 'user');
    const item = output.at(-1) ?? {};
    this.input = [...own, sentBack(item)];
    return { compacted, item, kept: output.slice(0, -1).map(sentBack), own };
  }

  /** The account's spending, and the sums of the log lines by charges and by tokens. */
  get books() {
    const { logged, quotas, faults } = this.rig.core;
    const item = quotas.items.get('acme');
    const sumOf = (amount: (line: RequestLog) => number): bigint =>
      logged.reduce((sum, line) => sum + BigInt(Math.round(amount(line) * 1e9)), 0n);
    return {
      spent: item?.spent,
      charged: sumOf(({ charge = '0' }) => Number(charge)),
      used: sumOf(
        ({ prompt_tokens: input = 0, completion_tokens: output = 0 }) => (input + 2 * output) / 1000,
      ),
      total: (item?.available ?? 0n) + (item?.spent ?? 0n),
      open: item?.open.size,
      faults,
    };
  }
}

describe.each(vendorModels.map(({ model }) => model))('a conversation on %s', (model) => {
  it.each(ways)('keeps its facts through two compactions (%s)', async (way) => {
    const session = new Session([model]);
    const { rig } = session;
    await session.work('turns=1 what does the file say?', 'it says fact-first');
    const { compacted, item, kept, own } = await session.compact(way);
    expect(compacted).toMatchObject({ object: way === 'path' ? 'response.compaction' : 'response' });
    expect(kept).toEqual(way === 'path' ? own : []);
    expect(item).toEqual({
      id: expect.any(String),
      type: 'compaction',
      encrypted_content: expect.any(String),
    });
    expect(compacted['usage']).toMatchObject({ input_tokens: expect.any(Number) });
    await session.work('turns=1 and the other file?', 'it says fact-second');
    expect(read(rig.calls.at(-1)?.body)).toContain('fact-first');
    await session.compact(way);
    await session.work('turns=1 go on', 'it says fact-third');
    const last = read(rig.calls.at(-1)?.body);
    for (const fact of ['fact-first', 'fact-second', 'fact-third']) expect(last).toContain(fact);
    // Only the compaction item is left of the earlier turns, so the first tool's result occurs nowhere else.
    expect(last).not.toContain('it says fact-first');
    expect(rig.objections).toEqual([]);
    const { spent, ...books } = session.books;
    expect(spent).toBeGreaterThan(0n);
    expect(books).toEqual({ charged: spent, used: spent, total: granted, open: 0, faults: [] });
  });
});

describe('a compaction', () => {
  it.each(ways)('keeps the reasoning that follows it if its upstream made it (%s)', async (way) => {
    const session = new Session([strict.model]);
    await session.work('turns=2 what does the file say?', 'fact-one');
    await session.compact(way);
    await session.work('turns=3 and the others?', 'fact-two');
    const { calls } = session.rig;
    const last = recordsIn(calls.at(-1)?.body['input']);
    expect(ofType(last, 'reasoning')).toHaveLength(3);
    for (const { text } of calls) expect(text).not.toMatch(/"action":"removed"/);
    expect(session.rig.objections).toEqual([]);
  });

  it('is done by an upstream that speaks Responses, at its path and without unsupported fields', async () => {
    const session = new Session(['gpt-5.6']);
    await session.work('turns=1 what does the file say?', 'fact-one');
    await session.compact('path');
    const { body, text } = session.rig.calls.at(-1) ?? { body: {}, text: '' };
    expect(Object.keys(body).toSorted()).toEqual(['input', 'model', 'prompt_cache_key']);
    expect(JSON.parse(text)).toMatchObject({ object: 'response.compaction' });
    // The vendor's item is never seen outside a seal.
    expect(session.answers.at(-1)?.text).not.toContain('gAAAA');
  });

  it.each([
    ['deepseek-v4-pro', 'none'],
    // Anthropic's cache includes the tool choice, so it stays unchanged.
    ['claude-opus-5-5', undefined],
  ])(
    'is a summary on %s: a text request follows the unchanged turns and tools, and no tool is called',
    async (model, choice) => {
      const session = new Session([model]);
      const { calls } = session.rig;
      await session.work('turns=1 what does the file say?', 'fact-one');
      const { messages, ...before } = calls.at(-1)?.body ?? {};
      await session.compact('path');
      const { messages: now, tool_choice: chosen, ...after } = calls.at(-1)?.body ?? {};
      const sent = recordsIn(now);
      // The last two are the answer and the request for the summary.
      expect(sent.slice(0, -2)).toEqual(messages);
      expect(JSON.stringify(sent.at(-1))).toContain('summary');
      expect(sent.length - recordsIn(messages).length).toBe(2);
      expect([after['tools'], after['system']]).toEqual([before['tools'], before['system']]);
      expect(chosen).toBe(choice);
    },
  );
});
