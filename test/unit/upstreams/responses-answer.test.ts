import { describe, expect, it } from 'vitest';
import { ErrorInAnswer } from '../../../shared/upstreams/exchange.ts';
import type { ResponsesReader } from '../../../shared/upstreams/dialects/responses/events.ts';
import {
  type Value,
  push,
  readerOf,
  read,
  callA,
  delta,
  argumentsDelta,
  added,
  done,
  message,
  called,
  completed,
  at,
} from '../../support/responses-events.ts';

describe('an incomplete Responses answer', () => {
  const cut = 'upstream failed: cut';
  it.each<[string, Value[], string]>([
    ['no end mark after content', [delta('x')], cut],
    ['no end mark after the start of an item', [added(message('', { content: [] }), at(0))], cut],
    ['nothing but its beginning', [{ type: 'response.created', response: {} }], 'upstream failed: empty'],
    ['events of another kind', [{ choices: [{ delta: { content: 'x' } }] }], 'upstream failed: junk'],
    ['a response that is still running', [{ object: 'response', status: 'in_progress', output: [] }], cut],
    [
      'a response that was cancelled',
      [{ type: 'response.cancelled', response: { status: 'cancelled' } }],
      cut,
    ],
  ])('fails: %s', (_case, values, expected) => {
    expect(() => read(values)).toThrow(expected);
  });

  it.each<[string, Value, object]>([
    [
      'a failed response',
      {
        type: 'response.failed',
        response: { status: 'failed', error: { code: 'context_length_exceeded', message: 'm' } },
      },
      { code: 'context_length_exceeded', message: 'm' },
    ],
    ['an error as JSON', { error: { code: 'c', message: 'm' } }, { code: 'c', message: 'm' }],
  ])('throws the error of %s', (_case, value, expected) => {
    let thrown: unknown;
    try {
      push(readerOf(), [delta('x'), value]);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(ErrorInAnswer);
    expect((thrown as ErrorInAnswer).error).toMatchObject(expected);
  });

  it('is billed by the usage of its failure', () => {
    const reader = readerOf();
    const usage = { input_tokens: 5, output_tokens: 2 };
    const failed = { type: 'response.failed', response: { status: 'failed', usage, error: { code: 'c' } } };
    expect(() => push(reader, [failed])).toThrow(ErrorInAnswer);
    expect(reader.report().usage).toMatchObject({ input: 5, output: 2 });
  });

  it('ends normally if the connection breaks after its end mark', () => {
    const reader = readerOf();
    push(reader, [delta('x'), completed()]);
    expect(reader.fail(new Error('reset')).at(-1)?.choices[0]?.finish_reason).toBe('stop');
  });
});

describe('the data that the relay keeps of an answer', () => {
  const big = 'x'.repeat(1024 * 1024);
  const endless = (value: (i: number) => Value) => (): void => {
    const reader = readerOf();
    for (let i = 0; i < 70_000; i += 1) push(reader, [value(i)]);
  };
  it.each<[string, () => void]>([
    ['text', endless(() => delta(big))],
    ['reasoning', endless(() => ({ type: 'response.reasoning_text.delta', delta: big }))],
    ['arguments without a name', endless(() => argumentsDelta(big))],
    [
      'encrypted items',
      endless((i) => done({ type: 'reasoning', id: `r${i}`, encrypted_content: big }, at(i))),
    ],
    ['items', endless((i) => added(message('', { id: `m${i}` }), at(i)))],
    ['calls', endless((i) => done(called(`call_${i}`, '{}'), at(i)))],
    ['parts', endless((i) => delta('', { ...at(0, 'm'), content_index: i }))],
  ])('is bounded: %s', (_case, flood) => {
    expect(flood).toThrow('upstream failed: too_large');
  });
});

it('an answer may have 1,024 calls', () => {
  const calls = Array.from({ length: 1025 }, (_, i) => done(called(`call_${i}`, '{}'), at(i)));
  expect(read([...calls.slice(1), completed()]).calls).toHaveLength(1024);
  expect(() => read([...calls, completed()])).toThrow('too_large');
});

describe('the turn state of a Responses answer', () => {
  it('is kept where its item began, however late the item ends', () => {
    const reader = readerOf();
    const item = { id: 'rs_1', type: 'reasoning', encrypted_content: 'gAAA', summary: [] };
    push(reader, [
      added({ ...item, encrypted_content: '' }, at(0)),
      added(called(callA, '', { id: 'a' }), at(1)),
      done(called(callA, '{}', { id: 'a' }), at(1)),
      done(item, at(0)),
      completed(item),
    ]);
    expect(reader.report().state).toEqual([{ opaque: { item } }, { call: 0 }]);
  });

  it.each<[string, Value[]]>([
    ['text and calls', [done(message('x'), at(0)), done(called(callA, '{}'), at(1))]],
    [
      'reasoning that is not encrypted, which is stored nowhere',
      [done({ type: 'reasoning', id: 'r', summary: [] }, at(0)), delta('x')],
    ],
  ])('is empty when the answer has only %s', (_case, values) => {
    const reader = readerOf();
    push(reader, values);
    expect(reader.report().state).toBeUndefined();
  });
});

describe('the usage of a Responses upstream', () => {
  const usageOf = (usage: Value, tier: unknown = 'flex'): ResponsesReader => {
    const reader = readerOf();
    push(reader, [{ type: 'response.completed', response: { usage, service_tier: tier } }]);
    return reader;
  };
  it.each(['a b', 'x'.repeat(33), 7])('ignores a service tier that is not one short word: %j', (tier) => {
    expect(usageOf({}, tier).report().serviceTier).toBeUndefined();
  });
});

describe('the input transformations of a Responses upstream', () => {
  const told = (list: unknown): unknown => {
    const reader = readerOf();
    push(reader, [{ type: 'response.created', response: { input_transformations: list } }]);
    return reader.report().inputTransformations;
  };

  it('are known from its first event on, and only as words of lowercase letters', () => {
    expect(told(undefined)).toBeUndefined();
    expect(told('none')).toBeUndefined();
    expect(told([])).toEqual([]);
    const kept = { type: 'reasoning', action: 'removed', reason: 'prefix_mismatch', id: 'rs_1' };
    const entry = { ...kept, prompt: 'secret words' };
    const foreign = { type: 'sk-12345', reason: 'https://internal.test', id: 7 };
    expect(told([entry, 'x', foreign])).toEqual([
      kept,
      { type: undefined, action: undefined, reason: undefined, id: undefined },
    ]);
  });

  it('are at most twenty entries, of the last event that reports them', () => {
    const reader = readerOf();
    const entry = { reason: 'prefix_mismatch' };
    push(reader, [{ type: 'response.created', response: { input_transformations: [{ reason: 'x' }] } }]);
    push(reader, [
      {
        type: 'response.completed',
        response: { input_transformations: Array.from({ length: 1000 }, () => entry) },
      },
    ]);
    const { inputTransformations: list } = reader.report();
    expect(list).toHaveLength(20);
    expect(list?.[0]).toMatchObject(entry);
  });
});
