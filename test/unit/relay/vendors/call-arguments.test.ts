/** Every client gets a call's arguments as one object, whatever the upstream sends, streamed or not. */
import { describe, expect, it } from 'vitest';
import { answers, askIn, callsOf, callsWith, clients, forms, rowOf } from '../../../support/three-forms.ts';
import { toolDelta } from '../../../support/upstream-frames.ts';

const twice = (value: object): string => JSON.stringify(JSON.stringify(value));
const cut = (text: string): string[] => text.match(/[^]{1,3}/g) ?? [text];

describe.each(forms)('arguments from an upstream that speaks %s', (dialect) => {
  it.each([
    ['an object in pieces', cut('{"a":"1"}'), [{ a: '1' }]],
    ['null', ['null'], [{}]],
    ['nothing', [''], [{}]],
    ['white space', [' \n'], [{}]],
    ['an empty text', ['""'], [{}]],
    ['an empty list', ['[]'], [{}]],
    ['an object encoded twice, in pieces', cut(twice({ a: '1' })), [{ a: '1' }]],
    ['an object encoded three times', [JSON.stringify(twice({ a: '1' }))], [{ a: '1' }]],
    ['two objects', cut('{"a":"1"}{"a":"2"}'), [{ a: '1' }, { a: '2' }]],
    ['an object and its repeat', cut('{"a":"1"} {"a": "1"}'), [{ a: '1' }]],
  ])('%s', async (_case, pieces, expected) => {
    for (const [form, isStreamed] of clients) {
      // Between Messages and Messages the vendor's own objects pass through.
      if (form === dialect && form === 'messages' && pieces.join('').includes('}')) continue;
      const options = { channels: [rowOf(dialect)], steps: callsWith[dialect](...pieces) };
      const { answer } = await askIn(form, { stream: isStreamed }, options);
      const calls = callsOf(form, answer, isStreamed);
      expect(calls.map(({ name, text }) => [name, JSON.parse(text)])).toEqual(
        expected.map((each) => ['f', each]),
      );
      expect(new Set(calls.map(({ id }) => id)).size).toBe(expected.length);
    }
  });

  it('that are another JSON value stay unchanged for chat and become an object’s input for Messages', async () => {
    const options = { channels: [rowOf(dialect)], steps: callsWith[dialect]('[1]') };
    for (const [form, isStreamed] of clients) {
      if (form === 'messages' && dialect === 'messages') continue;
      const { answer } = await askIn(form, { stream: isStreamed }, options);
      const expected = form === 'messages' ? { input: [1] } : [1];
      expect(callsOf(form, answer, isStreamed).map(({ text }) => JSON.parse(text))).toEqual([expected]);
    }
  });
});

it('arguments with more objects than any answer has calls are an upstream failure', async () => {
  const many = Array.from({ length: 1100 }, (_, i) => `{"a":${i}}`).join('');
  const { answer } = await askIn('chat', {}, { steps: callsWith.chat(many) });
  expect(answer.status).toBe(502);
});

it('a second object in a piece without name and id becomes another call', async () => {
  const called = (more: object, text: string): object =>
    toolDelta(0, { ...more, function: { name: 'f', arguments: text } });
  const second = toolDelta(0, { function: { arguments: '{"a":"2"}' } });
  const steps = answers.chat([called({ id: 'call_1', type: 'function' }, '{"a":"1"}'), second], 'tool_calls');
  const { answer } = await askIn('chat', {}, { steps });
  expect(callsOf('chat', answer, false).map(({ text }) => text)).toEqual(['{"a":"1"}', '{"a":"2"}']);
});

describe.each(forms)('arguments in a client’s history, sent to %s', (dialect) => {
  const given = ['null', '', '""', twice({ a: '1' })];
  const wanted = [{}, {}, {}, { a: '1' }];
  const histories = {
    chat: {
      messages: given.flatMap((text, i) => [
        { role: 'user', content: 'hi' },
        {
          role: 'assistant',
          tool_calls: [{ id: `call_${i}`, type: 'function', function: { name: 'f', arguments: text } }],
        },
        { role: 'tool', tool_call_id: `call_${i}`, content: 'r' },
      ]),
    },
    messages: {
      messages: [null, '', '""', JSON.stringify({ a: '1' })].flatMap((input, i) => [
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: [{ type: 'tool_use', id: `call_${i}`, name: 'f', input }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: `call_${i}`, content: 'r' }] },
      ]),
    },
    responses: {
      input: given.flatMap((text, i) => [
        { role: 'user', content: 'hi' },
        { type: 'function_call', call_id: `call_${i}`, name: 'f', arguments: text },
        { type: 'function_call_output', call_id: `call_${i}`, output: 'r' },
      ]),
    },
  };

  it.each(forms)('from %s', async (form) => {
    if (form === dialect && form === 'messages') return;
    const options = { channels: [rowOf(dialect)], steps: callsWith[dialect]('{}') };
    const { sent } = await askIn(form, histories[form], options);
    const parsed: unknown[] = [];
    JSON.stringify(sent, (key, value: unknown) => {
      if (key === 'arguments') parsed.push(JSON.parse(String(value)));
      if (key === 'input' && !Array.isArray(value)) parsed.push(value);
      return value;
    });
    expect(parsed).toEqual(wanted);
  });
});
