/** Conversations from stored responses: the turns found, the rejected references, and the limits. */
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { storedReading } from '../../../../shared/endpoints/responses/stored-input.ts';
import {
  type Admit,
  type ResponseHead,
  type StoredResponse,
  ancestorsMax,
} from '../../../../shared/relay/ports/stored.ts';
import { readConversation } from '../../../../shared/relay/stored/conversation.ts';
import { MemoryStored } from '../../../support/memory-stored.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { StoredReader, unpackedLengthMax } from '../../../../shared/relay/stored/reads.ts';

const account = 'acme';
const clock = new VirtualClock();
const day = 86_400;
const nowSeconds = Math.floor(clock.now() / 1000);
const suffixOf = (turn: number): string => `01chain${String(turn).padStart(19, '0')}`;
const idOf = (turn: number): string => `resp-${suffixOf(turn)}`;

let stored: MemoryStored;
let reads: (readonly string[])[];
/** The stores as the relay sees them, and their reads. */
const ports = () => ({
  clock,
  random: { next: () => 0.5 },
  stored: {
    runs: stored.runs,
    waiting: stored.waiting,
    events: stored.events,
    results: stored.results,
    startRun: stored.startRun,
    responses: {
      ...stored.responses,
      readEach: <Taken>(
        account: string,
        ids: readonly string[],
        take: (found: StoredResponse) => Taken,
        admit?: Admit,
      ) => {
        reads.push(ids);
        return stored.responses.readEach(account, ids, take, admit);
      },
    },
  },
});

beforeEach(() => {
  stored = new MemoryStored(clock);
  reads = [];
});

const said = (id: string, text: string) => ({
  type: 'message',
  id,
  role: 'assistant',
  content: [{ type: 'output_text', text }],
});

function turn(number: number, more: Partial<ResponseHead> = {}, body: Partial<StoredResponse['body']> = {}) {
  const ancestors = Array.from({ length: Math.min(number - 1, ancestorsMax) }, (_, i) =>
    idOf(number - 1 - i),
  );
  const head: ResponseHead = {
    account,
    id: idOf(number),
    status: 'completed',
    createdAt: nowSeconds,
    expires: nowSeconds + day,
    ancestors,
    turn: number,
    conversationLength: number * 100,
    ...more,
  };
  const input = [{ type: 'message', id: `msg_${suffixOf(number)}_in0`, role: 'user', content: `q${number}` }];
  const response = { id: head.id, output: [said(`msg_${suffixOf(number)}_0`, `a${number}`)] };
  return { head, body: { input, response, seal: `seal ${number}`, ...body } };
}

async function put(turns: number): Promise<void> {
  for (let number = 1; number <= turns; number += 1) stored.set(turn(number));
}

async function asked(body: object) {
  const references = storedReading.references({ model: 'm', ...body });
  if (!references) throw new Error('refers to nothing');
  return readConversation(new StoredReader(ports(), account), references);
}
const after = (previous: string) => asked({ previous_response_id: previous, input: 'x' });
const referring = (...ids: unknown[]) => asked({ input: ids.map((id) => ({ type: 'item_reference', id })) });

describe('the turns before a request', () => {
  it.each([1, 2, 33, 34, 65, 66, 100])('are found oldest first: %i of them', async (turns) => {
    await put(turns);
    const { earlier, previous } = await after(idOf(turns));
    expect(earlier.map(({ input }) => input[0]?.['content'])).toEqual(
      Array.from({ length: turns }, (_, i) => `q${i + 1}`),
    );
    expect(previous).toMatchObject({ id: idOf(turns), turn: turns });
    expect(reads).toHaveLength(1 + Math.ceil((turns - 1) / 8));
  });

  it('end at turn 1,000, found in 126 reads', async () => {
    await put(1_000);
    expect((await after(idOf(999))).earlier).toHaveLength(999);
    expect(reads).toHaveLength(126);
    reads = [];
    await expect(after(idOf(1_000))).rejects.toMatchObject({
      name: 'InvalidRequest',
      code: 'conversation_too_long',
      param: 'previous_response_id',
    });
    expect(reads).toHaveLength(1);
  });

  it('are not followed forever if their heads are wrong', async () => {
    stored.set(turn(2, { ancestors: [idOf(2)] }));
    await expect(after(idOf(2))).rejects.toMatchObject({ code: 'conversation_too_long' });
  });

  it('have at most 10 MB, which the last head shows before the others are read', async () => {
    await put(2);
    stored.set(turn(3, { conversationLength: 10 * 1024 * 1024 + 1 }));
    await expect(after(idOf(3))).rejects.toMatchObject({
      code: 'conversation_too_long',
      param: 'previous_response_id',
    });
    expect(reads).toHaveLength(1);
  });

  it.each(['queued', 'in_progress'] as const)('cannot end with a response that is %s', async (status) => {
    stored.set(turn(1, { status }));
    await expect(after(idOf(1))).rejects.toMatchObject({
      code: 'invalid_value',
      param: 'previous_response_id',
    });
  });

  it.each(['failed', 'cancelled', 'incomplete'] as const)(
    'may end with a response that is %s',
    async (status) => {
      stored.set(turn(1, { status }));
      expect((await after(idOf(1))).earlier).toHaveLength(1);
    },
  );
});

describe('an unreadable id is reported as not found', () => {
  const malformed = ['', 'x', 'resp-', `${idOf(1)}#1`, `${idOf(1)}#e#0`, 'result#abc', `RESP-${suffixOf(1)}`];
  const huge = 'resp-'.padEnd(5_000_000, 'x');

  it.each([...malformed, huge, "resp-' OR 1=1 --\n<b>"])(
    'for the previous response, without a read: %#',
    async (id) => {
      await put(1);
      const refusal = await after(id).catch((error: unknown) => error);
      expect(refusal).toMatchObject({
        status: 400,
        body: { error: { code: 'previous_response_not_found', param: 'previous_response_id' } },
      });
      expect(String(refusal).length).toBeLessThan(200);
      expect(String(refusal)).not.toMatch(/[<>\n]/);
      expect(reads).toEqual([]);
    },
  );

  it('with one text for foreign, deleted, expired and unknown responses', async () => {
    stored.set(turn(1, { account: 'other' }));
    const texts = [await textOf()];
    stored.set(turn(1));
    await stored.responses.remove(account, idOf(1));
    texts.push(await textOf());
    stored.set(turn(1, { expires: nowSeconds }));
    texts.push(await textOf());
    expect(new Set(texts)).toEqual(new Set([`Previous response with id '${idOf(1)}' not found.`]));
  });
  const textOf = () => after(idOf(1)).catch((error: Error) => error.message);

  it('after a deleted turn, for every conversation that contains it', async () => {
    await put(40);
    await stored.responses.remove(account, idOf(3));
    await expect(after(idOf(40))).rejects.toMatchObject({
      status: 400,
      body: { error: { code: 'previous_response_not_found', param: 'previous_response_id' } },
    });
    expect((await after(idOf(2))).earlier).toHaveLength(2);
  });

  it.each([
    'msg_x',
    `msg_${suffixOf(1)}_7`,
    `msg_${suffixOf(9)}_0`,
    `rs_${suffixOf(1)}_state`,
    `msg_${suffixOf(1)}_0 `,
    '__proto__',
  ])('for an item: %s', async (id) => {
    await put(1);
    await expect(referring(`msg_${suffixOf(1)}_0`, id)).rejects.toMatchObject({
      status: 404,
      body: { error: { code: 'response_not_found', param: 'input[1].id' } },
    });
  });
});

describe('item references', () => {
  it('find output items with the state of their turn, and input items', async () => {
    await put(1);
    const { referred } = await referring(`msg_${suffixOf(1)}_0`, `msg_${suffixOf(1)}_in0`);
    expect([...referred.values()]).toMatchObject([
      { item: { role: 'assistant' }, seal: 'seal 1' },
      { item: { role: 'user' }, seal: undefined },
    ]);
  });

  it('read each response once, and no response of the chain again', async () => {
    await put(3);
    const ids = [1, 2, 2, 1].map((number) => `msg_${suffixOf(number)}_0`);
    await asked({
      previous_response_id: idOf(1),
      input: ids.map((id) => ({ type: 'item_reference', id })),
    });
    expect(reads).toEqual([[idOf(1)], [idOf(2)]]);
  });

  it('inside stored turns are resolved, too', async () => {
    await put(1);
    const input = [{ type: 'item_reference', id: `msg_${suffixOf(1)}_0` }];
    stored.set(turn(2, { ancestors: [] }, { input }));
    expect([...(await after(idOf(2))).referred.keys()]).toEqual([`msg_${suffixOf(1)}_0`]);
    await stored.responses.remove(account, idOf(1));
    await expect(after(idOf(2))).rejects.toMatchObject({
      body: { error: { code: 'previous_response_not_found', param: 'previous_response_id' } },
    });
  });

  it('count as often as they occur', async () => {
    const id = `msg_${suffixOf(1)}_0`;
    const response = { output: [said(id, 'x'.repeat(100_000))] };
    stored.set(turn(1, {}, { response }));
    await referring(...Array.from({ length: 100 }, () => id));
    await expect(referring(...Array.from({ length: 110 }, () => id))).rejects.toMatchObject({
      code: 'conversation_too_long',
      param: 'input[104].id',
    });
  });

  it('to more than 128 responses are rejected before any read', async () => {
    const ids = Array.from({ length: 129 }, (_, i) => `msg_${suffixOf(i)}_0`);
    await expect(referring(...ids)).rejects.toMatchObject({ code: 'conversation_too_long' });
    expect(reads).toEqual([]);
  });
});

describe('large contents that a small request refers to', () => {
  // A response repeats the instructions of its request.
  const instructions = 'x'.repeat(4 * 1024 * 1024);

  it('are rejected by their lengths before any is unpacked', async () => {
    const output = (number: number) => [said(`msg_${suffixOf(number)}_0`, 'a')];
    const response = (number: number) => ({ instructions, output: output(number) });
    for (let number = 1; number <= 9; number += 1)
      stored.set(turn(number, {}, { response: response(number) }));
    const ids = Array.from({ length: 9 }, (_, i) => `msg_${suffixOf(i + 1)}_0`);
    expect((await referring(...ids.slice(0, 7))).referred.size).toBe(7);
    const taken = vi.fn();
    const readEach = stored.responses.readEach.bind(stored.responses);
    stored.responses.readEach = (of, some, take, admit) =>
      readEach(of, some, (found) => (taken(), take(found)), admit);
    await expect(referring(...ids)).rejects.toMatchObject({ code: 'conversation_too_long' });
    expect(taken).not.toHaveBeenCalled();
  });

  it('are rejected in a chain after a bounded read', async () => {
    for (let number = 1; number <= 20; number += 1)
      stored.set(turn(number, {}, { response: { instructions, output: [] } }));
    let unpacked = 0;
    const readEach = stored.responses.readEach.bind(stored.responses);
    stored.responses.readEach = (of, ids, take, admit) =>
      readEach(
        of,
        ids,
        (found) => {
          unpacked += JSON.stringify(found.body).length;
          return take(found);
        },
        admit,
      );
    await expect(after(idOf(20))).rejects.toMatchObject({ code: 'conversation_too_long' });
    expect(unpacked).toBeLessThanOrEqual(unpackedLengthMax);
  });
});
