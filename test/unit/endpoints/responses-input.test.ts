import { describe, expect, it } from 'vitest';
import { translateRequest } from '../../../shared/endpoints/responses/responses-endpoint.ts';
import type { ChatMessage } from '../../../shared/wire/canonical-call.ts';
import type { InputItem } from '../../../shared/endpoints/responses/request.ts';

const messagesOf = (input: InputItem[] | string, more: object = {}): ChatMessage[] =>
  translateRequest({ model: 'm', input, ...more }).chat.messages;

/** The messages, each with the text of its sealed state. */
function sealedOf(input: InputItem[]): unknown[][] {
  const { chat, sealed } = translateRequest({ model: 'm', input });
  return chat.messages.map((message) => [message.content, sealed.get(message)?.text]);
}

const call = (id: string, text: unknown = '{"at":1}'): InputItem => ({
  type: 'function_call',
  call_id: id,
  name: 'look',
  arguments: text,
});
const output = (id: string, text: unknown = `result of ${id}`): InputItem => ({
  type: 'function_call_output',
  call_id: id,
  output: text,
});
const said = (role: string, content: unknown): InputItem => ({ type: 'message', role, content });
const reasoning = (text?: unknown): InputItem => ({
  type: 'reasoning',
  summary: [],
  encrypted_content: text,
});
const assistant = (content: string | null, ...ids: string[]) => ({
  role: 'assistant',
  content,
  tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: 'look', arguments: '{"at":1}' } })),
});
const tool = (id: string, content: unknown = `result of ${id}`) => ({
  role: 'tool',
  tool_call_id: id,
  content,
});
const hi = { role: 'user', content: 'hi' };
const image = { type: 'input_image', image_url: 'data:image/png;base64,AA==', detail: 'low' };
const chatImage = { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==', detail: 'low' } };
const [one, two] = ['one', 'two'].map((text) => ({ type: 'input_text', text }));

describe('a Responses input', () => {
  it("as a string is the user's message, after the instructions as a system message", () => {
    expect(messagesOf('hi', { instructions: 'Be brief.' })).toEqual([
      { role: 'system', content: 'Be brief.' },
      hi,
    ]);
    expect(messagesOf('hi', { instructions: '' })).toEqual([hi]);
  });

  it.each<[string, InputItem[], object[]]>([
    ['developer is system', [{ role: 'developer', content: 'a' }], [{ role: 'system', content: 'a' }]],
    ['an item with only a role is a message', [{ type: null, ...hi }], [hi]],
    ['a name is kept', [{ ...hi, name: 'ann' }], [{ ...hi, name: 'ann' }]],
    [
      'an assistant message is one text, without other data of its parts',
      [
        {
          ...said('assistant', [
            { type: 'output_text', text: 'One.', logprobs: [] },
            { type: 'refusal', refusal: 'No.' },
          ]),
          id: 'i',
        },
      ],
      [{ role: 'assistant', content: 'One.\nNo.' }],
    ],
    [
      'images stay images with their detail, for every role',
      [said('user', [one, image]), said('system', [image])],
      [
        { role: 'user', content: [{ type: 'text', text: 'one' }, chatImage] },
        { role: 'system', content: [chatImage] },
      ],
    ],
    ['reasoning without state is ignored', [hi, reasoning(null), reasoning('')], [hi]],
  ])('%s', (_name, input, messages) => {
    expect(messagesOf(input)).toEqual(messages);
  });

  it.each([
    [{ file_data: 'data:application/pdf;base64,AA==', filename: 'a.pdf' }],
    [{ file_url: 'https://files.example/a.pdf' }],
  ])('with the file %j becomes a part of the message', (file) => {
    const parts = [{ type: 'input_file', ...file, file_id: null }];
    expect(messagesOf([said('user', parts)])[0]?.content).toEqual([{ type: 'file', file }]);
  });

  it('keeps the phase of a message, also when calls join it', () => {
    const first = { ...said('assistant', 'I look.'), phase: 'commentary' };
    const last = { ...said('assistant', 'Done.'), phase: 'final_answer' };
    const phases = messagesOf([first, call('a'), output('a'), last]).map(({ phase }) => phase);
    expect(phases).toEqual(['commentary', undefined, 'final_answer']);
  });
});

describe('reasoning that is sent back', () => {
  const [state, text] = [reasoning('relay1.x'), said('assistant', 'I look.')];
  it.each<[string, InputItem[]]>([
    ['before its calls', [state, text, call('a')]],
    ['between them', [text, state, call('a')]],
    ['after them', [text, call('a'), state]],
    ['twice: the last counts', [reasoning('relay1.old'), text, call('a'), state]],
    ['again without state', [state, text, call('a'), reasoning()]],
  ])('belongs to its turn: %s', (_where, turn) => {
    expect(sealedOf([hi, ...turn, output('a'), said('assistant', 'Done.')])).toEqual([
      ['hi', undefined],
      ['I look.', 'relay1.x'],
      ['result of a', undefined],
      ['Done.', undefined],
    ]);
  });

  it('belongs to a turn without calls too, whose texts join as the model wrote them', () => {
    expect(sealedOf([said('assistant', 'One '), state, said('assistant', 'two.'), hi])).toEqual([
      ['One two.', 'relay1.x'],
      ['hi', undefined],
    ]);
    expect(sealedOf([state, hi])).toEqual([['hi', undefined]]);
  });

  it('carries the id of its item, if that is included, and its path', () => {
    const input = [{ ...state, id: 'rs_1' }, call('a'), output('a'), call('b'), state];
    expect([...translateRequest({ model: 'm', input }).sealed.values()]).toEqual([
      { text: 'relay1.x', itemId: 'rs_1', param: 'input[0].encrypted_content' },
      { text: 'relay1.x', itemId: undefined, param: 'input[4].encrypted_content' },
    ]);
  });
});

describe('calls and their outputs', () => {
  it.each<[string, InputItem[], object[]]>([
    [
      'one after the other, each with its output, stay apart',
      [call('a'), output('a'), call('b'), output('b'), hi],
      [assistant(null, 'a'), tool('a'), assistant(null, 'b'), tool('b'), hi],
    ],
    [
      'in a row join the assistant message before them, and outputs take the order of the calls',
      [said('assistant', 'I look.'), call('a'), call('b'), output('b'), output('a')],
      [assistant('I look.', 'a', 'b'), tool('a'), tool('b')],
    ],
    [
      'with text after or between them move that text before the calls, so that no answer follows it',
      [call('a'), said('assistant', 'Wait,'), call('b'), said('assistant', 'please.'), output('a')],
      [assistant('Wait,\nplease.', 'a', 'b'), tool('a')],
    ],
    [
      'an output far from its call follows it',
      [call('a'), hi, output('a')],
      [assistant(null, 'a'), tool('a'), hi],
    ],
    [
      'an id that a later turn uses again gets the outputs in their order',
      [call('a'), output('a', 'first'), hi, call('a'), output('a', 'second')],
      [assistant(null, 'a'), tool('a', 'first'), hi, assistant(null, 'a'), tool('a', 'second')],
    ],
    [
      'an empty message before a call leaves the content null',
      [said('assistant', ''), call('a')],
      [assistant(null, 'a')],
    ],
    [
      'an output of parts is their text, or the parts where an image is among them',
      [call('a'), call('b'), output('a', [one, image]), output('b', [one, two])],
      [
        assistant(null, 'a', 'b'),
        tool('a', [{ type: 'text', text: 'one' }, chatImage]),
        tool('b', 'one\ntwo'),
      ],
    ],
    [
      'declared tools between calls do not part them',
      [call('a'), { type: 'additional_tools', tools: [{ type: 'function', name: 'look' }] }, call('b')],
      [assistant(null, 'a', 'b')],
    ],
    [
      'the call of a custom tool stays one, with its input as it is',
      [
        { type: 'custom_tool_call', call_id: 'a', name: 'patch', input: '* "x"' },
        { ...output('a'), type: 'custom_tool_call_output' },
      ],
      [
        {
          ...assistant(null),
          tool_calls: [{ id: 'a', type: 'custom', custom: { name: 'patch', input: '* "x"' } }],
        },
        tool('a'),
      ],
    ],
  ])('%s', (_name, input, messages) => {
    expect(messagesOf(input)).toEqual(messages);
  });

  const calledOf = (item: InputItem, more?: object) => messagesOf([item], more)[0]?.tool_calls?.[0]?.function;

  it.each([
    ['', '{}'],
    [undefined, '{}'],
    [{ at: 2 }, '{"at":2}'],
    ['not json', 'not json'],
  ])('with arguments of %j are sent as %j', (sent, expected) => {
    expect(calledOf({ ...call('a'), arguments: sent })?.arguments).toBe(expected);
  });

  it('without a name use the only tool, and use the joined name in a namespace', () => {
    const tools = [{ type: 'function', name: 'sole' }, { type: 'web_search' }];
    expect(calledOf({ type: 'function_call', call_id: 'a' }, { tools })?.name).toBe('sole');
    expect(calledOf({ ...call('a'), namespace: 'mcp__files' })?.name).toBe('mcp__files__look');
  });

  it('in a body full of small items neither overflow nor take long', () => {
    expect(messagesOf(Array.from({ length: 150_000 }, () => hi))).toHaveLength(150_000);
    const outputs = Array.from({ length: 40_000 }, () => [call('a'), output('a', 'x')]).flat();
    expect(messagesOf(outputs)).toHaveLength(80_000);
  });
});
