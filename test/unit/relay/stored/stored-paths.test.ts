/** The paths of a stored response, through the whole core. */
import { describe, expect, it } from 'vitest';
import { StoreBusy, StoreUnavailable } from '../../../../shared/relay/ports/store-errors.ts';
import type { StoredResponse } from '../../../../shared/relay/ports/stored.ts';
import { demoKey, keyRow } from '../../../support/core-rig.ts';
import { parsed, plainKey, secondKey, StoredRig, type Value } from './stored-rig.ts';

const idIn = (text: string): string => String(parsed(text)['id']);

async function stored(rig: StoredRig, body: Value = {}): Promise<{ id: string; answer: Value }> {
  const { text } = await rig.create(body);
  return { id: idIn(text), answer: parsed(text) };
}

/** A background response as its acceptance leaves it. */
const waiting = (more: Partial<StoredResponse['head']>, until: number): StoredResponse => {
  const id = `resp-${'b'.repeat(26)}`;
  return {
    head: {
      account: 'acme',
      id,
      status: 'queued',
      createdAt: 1,
      expires: 9e9,
      ancestors: [],
      turn: 1,
      conversationLength: 1,
      background: { streamed: false, until },
      ...more,
    },
    body: { input: [], response: { id, object: 'response', status: 'queued', output: [], error: null } },
  };
};

describe('a stored response', () => {
  it.each([demoKey, secondKey])(
    'can be read as it was answered with every key of its account',
    async (key) => {
      const rig = new StoredRig();
      const { id, answer } = await stored(rig);
      const { status, json, headers } = await rig.ask(`GET /${id}`, key);
      expect(status).toBe(200);
      expect(json).toEqual(answer);
      expect(json).toMatchObject({ status: 'completed', store: true });
      expect(headers).toMatchObject({ 'content-type': 'application/json', 'cache-control': 'no-store' });
    },
  );

  it('can be read as soon as its last event is sent, in another environment', async () => {
    const rig = new StoredRig();
    const response = await rig.clock.run(
      rig.respond({ model: 'm', input: 'hi', stream: true }, { path: '/v1/responses' }),
    );
    let seen: unknown;
    const read = async (): Promise<void> => {
      for await (const text of response.body as AsyncIterable<string>)
        if (text.includes('response.completed')) {
          const id = `resp-01testrequest0000000000000`;
          seen = (await rig.stored.responses.read('acme', [id])).get(id)?.head.status;
        }
    };
    await rig.clock.run(read());
    await rig.clock.run(response.done);
    expect(seen).toBe('completed');
  });

  it('is deleted at once, with its input', async () => {
    const rig = new StoredRig();
    const { id } = await stored(rig);
    const gone = await rig.ask(`DELETE /${id}`);
    expect([gone.status, gone.json]).toEqual([200, { id, object: 'response', deleted: true }]);
    for (const asked of [`GET /${id}`, `GET /${id}/input_items`, `DELETE /${id}`, `POST /${id}/cancel`])
      expect((await rig.ask(asked)).status).toBe(404);
  });

  it('can be read while the relay is closed and rejects calls', async () => {
    const rig = new StoredRig();
    const { id } = await stored(rig);
    const closed = new StoredRig({ beside: rig, settings: { relayClosed: true } });
    expect((await closed.ask(`GET /${id}`)).status).toBe(200);
    expect((await closed.create({})).status).toBe(403);
  });

  it('shows its state as the first item only on request', async () => {
    const rig = new StoredRig();
    const { id, answer } = await stored(rig);
    const found = (await rig.stored.responses.read('acme', [id])).get(id);
    if (found) rig.stored.set({ ...found, body: { ...found.body, seal: 'sealed' } });
    expect((await rig.ask(`GET /${id}`)).json).toEqual(answer);
    for (const field of ['include', 'include[]', 'include[0]']) {
      const { json } = await rig.ask(`GET /${id}?${field}=reasoning.encrypted_content`);
      expect((json['output'] as Value[]).slice(1)).toEqual(answer['output']);
      expect((json['output'] as Value[])[0]).toMatchObject({
        id: `${id.replace('resp-', 'rs_')}_state`,
        type: 'reasoning',
        encrypted_content: 'sealed',
      });
    }
  });

  it('cannot be followed unless it runs in the background', async () => {
    const rig = new StoredRig();
    const { id } = await stored(rig);
    const { status, json } = await rig.ask(`GET /${id}?stream=true`);
    expect(status).toBe(400);
    expect(json).toMatchObject({ error: { type: 'invalid_request_error', param: 'stream' } });
  });
});

const paths = (id: string): string[] => [
  `GET /${id}`,
  `GET /${id}?stream=true`,
  `GET /${id}/input_items`,
  `DELETE /${id}`,
  `POST /${id}/cancel`,
];
const unknown = `resp-${'0'.repeat(26)}`;

describe('an unreadable response id', () => {
  it('in an invalid form, or of a key that may not store, is rejected without a lookup', async () => {
    const rig = new StoredRig();
    rig.stored.failing = new Error('asked');
    for (const path of paths('resp-01#1')) expect((await rig.ask(path)).status).toBe(404);
    for (const path of paths(unknown)) expect((await rig.ask(path, plainKey)).status).toBe(404);
    expect(rig.faults).toEqual([]);
  });

  it.each([`${unknown}/x`, `${unknown}/input_items/x`, 'responses'])(
    'in an unknown path is rejected for every key: %s',
    async (ending) => {
      const rig = new StoredRig();
      rig.stored.failing = new Error('asked');
      const asked = ['GET', 'POST', 'DELETE'].flatMap((method) =>
        [demoKey, plainKey, 'sk-unknown'].map((key) => rig.ask(`${method} /${ending}`, key)),
      );
      for (const { status, json } of await Promise.all(asked))
        expect([status, json['error']]).toEqual([404, expect.objectContaining({ code: 'not_found' })]);
      expect(rig.faults).toEqual([]);
      expect(rig.keyLookups).toBe(0);
    },
  );

  it('is found even if this environment has an outdated key that may not store', async () => {
    const rig = new StoredRig();
    const { id } = await stored(rig);
    const row = { row: keyRow() };
    const keys = { [demoKey]: row };
    const late = new StoredRig({ beside: rig, keys });
    let reads = 0;
    const asked = late.ask(`GET /${id}`);
    Object.defineProperty(keys, demoKey, {
      get: () => (++reads > 1 ? { row: keyRow({ store: true }) } : row),
    });
    expect((await asked).status).toBe(200);
  });
});

describe('a failing response store', () => {
  it.each([new StoreUnavailable('down'), new StoreBusy('throttled')])(
    'is answered by 503 with a Retry-After, never by 404: %s',
    async (failing) => {
      const rig = new StoredRig();
      const { id } = await stored(rig);
      rig.stored.failing = failing;
      for (const path of [`GET /${id}`, `GET /${id}/input_items`, `DELETE /${id}`, `POST /${id}/cancel`]) {
        const { status, headers } = await rig.ask(path);
        expect(status).toBe(503);
        expect(headers['retry-after']).toBeDefined();
      }
      rig.stored.failing = undefined;
      expect((await rig.ask(`GET /${id}`)).status).toBe(200);
    },
  );
});

describe('a background response', () => {
  it.each([
    ['queued', 9e9, 'queued'],
    ['in_progress', 9e9, 'in_progress'],
    ['cancelled', 9e9, 'cancelled'],
    ['in_progress', 1, 'failed'],
    ['queued', 1, 'failed'],
  ] as const)('that is %s until %i is shown as %s', async (status, until, shown) => {
    const rig = new StoredRig();
    const response = waiting({ status }, until);
    rig.stored.set(response);
    const { json } = await rig.ask(`GET /${response.head.id}`);
    expect(json['status']).toBe(shown);
    expect(Boolean(json['error'])).toBe(shown === 'failed');
    const head = (await rig.stored.responses.heads('acme', [response.head.id])).get(response.head.id);
    expect(head?.status).toBe(shown);
  });
});

describe('the log of stored responses', () => {
  it('has a line for each request, without ids and content', async () => {
    const rig = new StoredRig();
    const { id } = await stored(rig, { input: 'a secret question' });
    rig.logged.length = 0;
    for (const path of paths(id)) await rig.ask(path);
    await rig.ask(`GET /${id}`, 'sk-unknown');
    expect(rig.logged.map(({ endpoint, status, account }) => [endpoint, status, account])).toEqual([
      ['response', 200, 'acme'],
      ['response', 400, 'acme'],
      ['response_input_items', 200, 'acme'],
      ['response_delete', 200, 'acme'],
      ['response_cancel', 404, 'acme'],
      ['response', 401, undefined],
    ]);
    expect(JSON.stringify([rig.logged, rig.events])).not.toMatch(/secret question|Hello/);
  });
});

describe('the input items of a response', () => {
  const said = (json: Value): unknown[] =>
    (json['data'] as { content?: { text?: string }[]; id: string }[]).map(
      ({ content, id }) => content?.[0]?.text ?? id,
    );
  const many = (count: number): Value => ({
    input: Array.from({ length: count }, (_, i) => ({ role: 'user', content: `item ${i + 1}` })),
  });

  it('come 20 to a page, newest first, with ids and in OpenAI’s form', async () => {
    const rig = new StoredRig();
    const { id } = await stored(rig, many(25));
    const { json } = await rig.ask(`GET /${id}/input_items`);
    expect(json).toMatchObject({ object: 'list', has_more: true });
    expect(said(json)).toEqual(Array.from({ length: 20 }, (_, i) => `item ${25 - i}`));
    const items = json['data'] as Value[];
    expect(json['first_id']).toBe(items[0]?.['id']);
    expect(json['last_id']).toBe(items.at(-1)?.['id']);
    expect(items[0]).toEqual({
      id: expect.stringMatching(/^msg_/),
      type: 'message',
      status: 'completed',
      role: 'user',
      content: [{ type: 'input_text', text: 'item 25' }],
    });
  });

  it('include the turns before it', async () => {
    const rig = new StoredRig();
    let previous: string | undefined;
    for (let turn = 1; turn <= 12; turn += 1) {
      const { id } = await stored(rig, { input: `question ${turn}`, previous_response_id: previous });
      previous = id;
    }
    const { json } = await rig.ask(`GET /${previous}/input_items?order=asc&limit=100`);
    const turns = Array.from({ length: 11 }, (_, i) => [`question ${i + 1}`, 'Hello']).flat();
    expect(said(json)).toEqual([...turns, 'question 12']);
    expect(json['has_more']).toBe(false);
    const newest = await rig.ask(`GET /${previous}/input_items?limit=3`);
    expect(said(newest.json)).toEqual(['question 12', 'Hello', 'question 11']);
    expect(newest.json['has_more']).toBe(true);
  });

  it('are the remaining ones of a conversation whose beginning was deleted', async () => {
    const rig = new StoredRig();
    const { id: first } = await stored(rig, { input: 'one' });
    const { id: second } = await stored(rig, { input: 'two', previous_response_id: first });
    const { id: third } = await stored(rig, { input: 'three', previous_response_id: second });
    await rig.ask(`DELETE /${first}`);
    const { json } = await rig.ask(`GET /${third}/input_items?order=asc`);
    expect(said(json)).toEqual(['two', 'Hello', 'three']);
  });

  it('show the referenced item, or the reference once the item is deleted', async () => {
    const rig = new StoredRig();
    const { id, answer } = await stored(rig);
    const [{ id: itemId } = { id: '' }] = answer['output'] as { id: string }[];
    const input = [
      { type: 'item_reference', id: itemId },
      { role: 'user', content: 'and?' },
    ];
    const { id: next } = await stored(rig, { input });
    const before = await rig.ask(`GET /${next}/input_items?order=asc`);
    expect(before.json['data']).toMatchObject([{ id: itemId, type: 'message', role: 'assistant' }, {}]);
    await rig.ask(`DELETE /${id}`);
    const after = await rig.ask(`GET /${next}/input_items?order=asc`);
    expect(after.json['data']).toMatchObject([{ id: itemId, type: 'item_reference' }, {}]);
  });

  it('have all fields of the list schema, even if the client omitted them', async () => {
    const rig = new StoredRig();
    const image = { type: 'input_image', image_url: 'https://images.example/a.png' };
    const call = { call_id: 'c1', name: 'look', arguments: '{}' };
    const input = [
      { role: 'user', content: [image] },
      { role: 'assistant', content: 'Let me look.' },
      { role: 'assistant', content: [{ type: 'output_text', text: 'Wait.', annotations: null }] },
      { type: 'reasoning' },
      { type: 'function_call', ...call },
      { type: 'function_call_output', call_id: 'c1', output: [image] },
    ];
    const { id } = await stored(rig, { input });
    const { json } = await rig.ask(`GET /${id}/input_items?order=asc`);
    const text = { type: 'output_text', annotations: [], logprobs: [] };
    expect(json['data']).toMatchObject([
      { status: 'completed', content: [{ ...image, image_url: null, detail: 'auto' }] },
      { status: 'completed', content: [{ ...text, text: 'Let me look.' }] },
      { status: 'completed', content: [{ ...text, text: 'Wait.' }] },
      { type: 'reasoning', summary: [] },
      { ...call, status: 'completed' },
      { status: 'completed', output: [{ ...image, detail: 'auto' }] },
    ]);
  });

  it('show images only on request', async () => {
    const rig = new StoredRig();
    const image = { type: 'input_image', image_url: 'https://images.example/a.png' };
    const { id } = await stored(rig, { input: [{ role: 'user', content: [image] }] });
    const plain = await rig.ask(`GET /${id}/input_items`);
    expect(plain.json['data']).toMatchObject([{ content: [{ type: 'input_image', image_url: null }] }]);
    const whole = await rig.ask(`GET /${id}/input_items?include[]=message.input_image.image_url`);
    expect(whole.json['data']).toMatchObject([{ content: [image] }]);
  });

  it.each([
    ['limit=0', 'limit'],
    ['limit=101', 'limit'],
    ['limit=-1', 'limit'],
    ['limit=1e1', 'limit'],
    ['order=up', 'order'],
    ['after=msg_nobody', 'after'],
  ])('are rejected with %s by name', async (query, param) => {
    const rig = new StoredRig();
    const { id } = await stored(rig);
    const { status, json } = await rig.ask(`GET /${id}/input_items?${query}`);
    expect(status).toBe(400);
    expect(json).toMatchObject({ error: { type: 'invalid_request_error', code: 'invalid_value', param } });
  });
});

describe('reads of stored responses', () => {
  const limited = (own: Parameters<typeof keyRow>[0]) =>
    new StoredRig({ keys: { [demoKey]: { row: keyRow({ store: true, ...own }) } } });

  it.each(['GET', 'GET input_items', 'POST cancel'])(
    'count towards the limit of their key a minute: %s',
    async (asked) => {
      const rig = limited({ rpm: 2 });
      const { id } = await stored(rig);
      const [method, rest] = asked.split(' ');
      const path = `${method} /${id}${rest ? `/${rest}` : ''}`;
      expect((await rig.ask(path)).status).not.toBe(429);
      const { status, json, headers } = await rig.ask(path);
      expect([status, headers['retry-after']]).toEqual([429, expect.any(String)]);
      expect(json).toMatchObject({ error: { code: 'rate_limit_exceeded' } });
      expect((await rig.ask(`DELETE /${id}`)).status).toBe(200);
    },
  );

  it('count even if a repeat gets the first result', async () => {
    const rig = limited({ rpm: 2 });
    const headers = { authorization: `Bearer ${demoKey}`, 'idempotency-key': 'once' };
    const statuses = [];
    for (let i = 0; i < 3; i += 1) statuses.push((await rig.create({}, { headers })).status);
    expect(statuses).toEqual([200, 200, 429]);
  });

  it('count towards the key’s concurrent calls, even for a call that continues a stored response', async () => {
    const rig = limited({ max_concurrency: 2 });
    const { id } = await stored(rig);
    const read = rig.stored.responses.read.bind(rig.stored.responses);
    const go = Promise.withResolvers<void>();
    rig.stored.responses.read = async (...of) => (await go.promise, read(...of));
    const held = [rig.ask(`GET /${id}`), rig.ask(`GET /${id}/input_items`)];
    await new Promise((resolve) => setImmediate(resolve));
    for (const refused of [await rig.ask(`GET /${id}`), await rig.create({ previous_response_id: id })]) {
      expect(refused.status).toBe(429);
      expect(refused.text).toContain('limited to 2 requests at the same time');
    }
    go.resolve();
    expect((await Promise.all(held)).map(({ status }) => status)).toEqual([200, 200]);
    expect((await rig.ask(`GET /${id}`)).status).toBe(200);
  });

  it('reserve the memory of their host, and are rejected while there is none', async () => {
    const rig = new StoredRig();
    const { id } = await stored(rig, { input: 'x'.repeat(10_000) });
    let left = 15_000;
    const taken: number[] = [];
    const room = {
      take(bytes: number): boolean {
        if (bytes > left) return false;
        left -= bytes;
        taken.push(bytes);
        return true;
      },
      give: (bytes: number) => void (left += bytes),
    };
    expect((await rig.ask(`GET /${id}`, demoKey, { room })).status).toBe(200);
    expect(taken[0]).toBeGreaterThan(10_000);
    for (const refused of [
      await rig.ask(`GET /${id}`, demoKey, { room }),
      await rig.create({ previous_response_id: id }, { room }),
      await rig.create({ input: [{ type: 'item_reference', id: `msg_${id.slice(5)}_0` }] }, { room }),
    ]) {
      expect([refused.status, refused.headers['retry-after']]).toEqual([503, '1']);
      expect(parsed(refused.text)).toMatchObject({ error: { code: 'unavailable' } });
    }
  });
});
