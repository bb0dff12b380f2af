import { describe, expect, it } from 'vitest';
import { responsesToChat } from '../../../shared/endpoints/responses/responses-endpoint.ts';
import type { ChatMessage } from '../../../shared/wire/canonical-call.ts';
import type { InputItem } from '../../../shared/endpoints/responses/request.ts';

const messagesOf = (input: InputItem[] | string, more: object = {}): ChatMessage[] =>
  responsesToChat({ model: 'm', input, ...more }).chat.messages;

/** The messages with the text of the sealed state that belongs to each. */
function sealedOf(input: InputItem[]): { message: unknown; sealed: unknown }[] {
  const { chat, sealed } = responsesToChat({ model: 'm', input });
  return chat.messages.map((message) => ({ message: message.content, sealed: sealed.get(message)?.text }));
}

const call = (callId: string, name = 'look', text = '{"at":1}'): InputItem => ({
  type: 'function_call',
  call_id: callId,
  name,
  arguments: text,
});
const output = (callId: string, text: unknown = `result of ${callId}`): InputItem => ({
  type: 'function_call_output',
  call_id: callId,
  output: text,
});
const said = (role: string, content: unknown): InputItem => ({ type: 'message', role, content });
const chatCall = (id: string, name = 'look', text = '{"at":1}') => ({
  id,
  type: 'function',
  function: { name, arguments: text },
});
const toolMessage = (id: string) => ({ role: 'tool', tool_call_id: id, content: `result of ${id}` });

describe('the input becomes messages', () => {
  it('a string is what the user says, after the instructions as a system message', () => {
    expect(messagesOf('hi', { instructions: 'Be brief.' })).toEqual([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'hi' },
    ]);
  });

  it.each([null, undefined, ''])('instructions of %j add nothing', (instructions) => {
    expect(messagesOf('hi', { instructions })).toEqual([{ role: 'user', content: 'hi' }]);
  });

  it('an item without type but with a role is a message; developer is system', () => {
    const input = [
      { role: 'developer', content: 'rules' },
      { type: null, role: 'user', content: 'hi' },
      { role: 'assistant', content: 'ho' },
    ];
    expect(messagesOf(input)).toEqual([
      { role: 'system', content: 'rules' },
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: 'ho' },
    ]);
  });

  it('a name of a message goes along', () => {
    expect(messagesOf([{ ...said('user', 'hi'), name: 'ann' }])).toEqual([
      { role: 'user', content: 'hi', name: 'ann' },
    ]);
  });

  it('an assistant message is one text, whatever its parts carry besides', () => {
    const parts = [
      { type: 'output_text', text: 'One.', annotations: [], logprobs: [] },
      { type: 'refusal', refusal: 'Not that.' },
    ];
    expect(messagesOf([{ ...said('assistant', parts), id: 'msg_1', status: 'completed' }])).toEqual([
      { role: 'assistant', content: 'One.\nNot that.' },
    ]);
  });

  it('images stay images, with their detail, whoever sent them', () => {
    const image = { type: 'input_image', image_url: 'data:image/png;base64,AA==', detail: 'low' };
    const chatImage = { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==', detail: 'low' } };
    const parts = [{ type: 'input_text', text: 'See:' }, image];
    expect(messagesOf([said('user', parts), said('system', [image])])).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'See:' }, chatImage] },
      { role: 'system', content: [chatImage] },
    ]);
  });
});

describe('files', () => {
  it.each([
    [{ file_data: 'data:application/pdf;base64,AA==', filename: 'a.pdf' }],
    [{ file_url: 'https://files.example/a.pdf' }],
  ])('%j becomes a part of the message', (file) => {
    const parts = [{ type: 'input_file', ...file, file_id: null }];
    expect(messagesOf([said('user', parts)])[0]?.content).toEqual([{ type: 'file', file }]);
  });
});

describe('reasoning that comes back', () => {
  const reasoning = (text?: unknown, id?: string): InputItem => ({
    type: 'reasoning',
    ...(id && { id }),
    summary: [{ type: 'summary_text', text: 'Hm.' }],
    encrypted_content: text,
  });

  it.each([undefined, null, ''])('is ignored without state (%j)', (text) => {
    expect(messagesOf([said('user', 'hi'), reasoning(text), said('assistant', 'ho')])).toEqual([
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: 'ho' },
    ]);
  });

  it.each([
    ['before its calls', [reasoning('relay1.x'), said('assistant', 'I look.'), call('a'), call('b')]],
    ['between them', [said('assistant', 'I look.'), call('a'), reasoning('relay1.x'), call('b')]],
    ['after them', [said('assistant', 'I look.'), call('a'), call('b'), reasoning('relay1.x')]],
    [
      'twice: the last counts',
      [reasoning('relay1.old'), said('assistant', 'I look.'), call('a'), call('b'), reasoning('relay1.x')],
    ],
    [
      'again without state',
      [reasoning('relay1.x'), said('assistant', 'I look.'), call('a'), call('b'), reasoning()],
    ],
  ])('belongs to its turn: %s', (_where, turn) => {
    const input = [said('user', 'go'), ...turn, output('a'), output('b'), said('assistant', 'Done.')];
    expect(sealedOf(input)).toEqual([
      { message: 'go', sealed: undefined },
      { message: 'I look.', sealed: 'relay1.x' },
      { message: 'result of a', sealed: undefined },
      { message: 'result of b', sealed: undefined },
      { message: 'Done.', sealed: undefined },
    ]);
  });

  it('belongs to a turn without calls too, whose texts join as the model wrote them', () => {
    const input = [
      said('assistant', 'One '),
      reasoning('relay1.x'),
      said('assistant', 'two.'),
      said('user', 'hm'),
    ];
    expect(sealedOf(input)).toEqual([
      { message: 'One two.', sealed: 'relay1.x' },
      { message: 'hm', sealed: undefined },
    ]);
  });

  it('carries the id of its item, if it came back, and its path', () => {
    const withId = responsesToChat({ model: 'm', input: [reasoning('relay1.x', 'rs_1'), call('a')] });
    const without = responsesToChat({ model: 'm', input: [call('a'), reasoning('relay1.x')] });
    expect([...withId.sealed.values(), ...without.sealed.values()]).toEqual([
      { text: 'relay1.x', itemId: 'rs_1', param: 'input[0].encrypted_content' },
      { text: 'relay1.x', itemId: undefined, param: 'input[1].encrypted_content' },
    ]);
  });

  it('says nothing where no turn stands beside it', () => {
    expect(sealedOf([reasoning('relay1.x'), said('user', 'hi')])).toEqual([
      { message: 'hi', sealed: undefined },
    ]);
  });
});

describe('the phase of an assistant message', () => {
  it('stays on it, also when calls join it', () => {
    const first = { ...said('assistant', 'I look.'), phase: 'commentary' };
    const last = { ...said('assistant', 'Done.'), phase: 'final_answer' };
    const phases = messagesOf([first, call('a'), output('a'), last]).map(({ phase }) => phase);
    expect(phases).toEqual(['commentary', undefined, 'final_answer']);
  });
});

describe('calls and their outputs', () => {
  it('a call and its output are an assistant message and a tool message', () => {
    expect(messagesOf([said('user', 'go'), call('a'), output('a'), said('user', 'and?')])).toEqual([
      { role: 'user', content: 'go' },
      { role: 'assistant', content: null, tool_calls: [chatCall('a')] },
      toolMessage('a'),
      { role: 'user', content: 'and?' },
    ]);
  });

  it('calls that stand together join the assistant message before them, and outputs take the order of the calls', () => {
    const input = [
      said('assistant', 'I look.'),
      call('a'),
      call('b'),
      call('c'),
      output('c'),
      output('a'),
      output('b'),
    ];
    expect(messagesOf(input)).toEqual([
      { role: 'assistant', content: 'I look.', tool_calls: ['a', 'b', 'c'].map((id) => chatCall(id)) },
      toolMessage('a'),
      toolMessage('b'),
      toolMessage('c'),
    ]);
  });

  it('what the assistant said after or between its calls is said with them, so that no answer follows it', () => {
    const input = [call('a'), said('assistant', 'Wait,'), call('b'), said('assistant', 'please.')];
    expect(messagesOf([...input, output('a'), output('b')])).toEqual([
      { role: 'assistant', content: 'Wait,\nplease.', tool_calls: [chatCall('a'), chatCall('b')] },
      toolMessage('a'),
      toolMessage('b'),
    ]);
  });

  it('calls one after the other, each with its output, stay apart', () => {
    expect(messagesOf([call('a'), output('a'), call('b'), output('b')])).toEqual([
      { role: 'assistant', content: null, tool_calls: [chatCall('a')] },
      toolMessage('a'),
      { role: 'assistant', content: null, tool_calls: [chatCall('b')] },
      toolMessage('b'),
    ]);
  });

  it('an output far from its call follows it all the same', () => {
    expect(messagesOf([call('a'), said('user', 'hurry'), output('a')])).toEqual([
      { role: 'assistant', content: null, tool_calls: [chatCall('a')] },
      toolMessage('a'),
      { role: 'user', content: 'hurry' },
    ]);
  });

  it('an id that a later turn uses again gets the outputs in their order', () => {
    const input = [call('a'), output('a', 'first'), said('user', 'again'), call('a'), output('a', 'second')];
    const contents = messagesOf(input).flatMap(({ role, content }) => (role === 'tool' ? [content] : []));
    expect(contents).toEqual(['first', 'second']);
  });

  it('an empty message before a call leaves the content null, as upstreams want it', () => {
    expect(messagesOf([said('assistant', ''), call('a')])[0]).toMatchObject({ content: null });
  });

  it.each([
    ['', '{}'],
    [undefined, '{}'],
    [{ at: 2 }, '{"at":2}'],
    ['not json', 'not json'],
  ])('arguments of %j are sent as %j', (sent, expected) => {
    const [message] = messagesOf([{ type: 'function_call', call_id: 'a', name: 'look', arguments: sent }]);
    expect(message?.tool_calls?.[0]?.function?.arguments).toBe(expected);
  });

  it('an output of parts is their text, or the parts where an image is among them', () => {
    const image = { type: 'input_image', image_url: 'https://images.example/1.png' };
    const [one, two] = ['one', 'two'].map((text) => ({ type: 'input_text', text }));
    const input = [call('a'), call('b'), output('a', [one, image]), output('b', [one, two])];
    const chatImage = { type: 'image_url', image_url: { url: 'https://images.example/1.png' } };
    expect(messagesOf(input).slice(1)).toEqual([
      { role: 'tool', tool_call_id: 'a', content: [{ type: 'text', text: 'one' }, chatImage] },
      { role: 'tool', tool_call_id: 'b', content: 'one\ntwo' },
    ]);
  });

  it('a call without a name takes the one tool that there is', () => {
    const tools = [{ type: 'function', name: 'sole' }, { type: 'web_search' }];
    const [message] = messagesOf([{ type: 'function_call', call_id: 'a', arguments: '{}' }], { tools });
    expect(message?.tool_calls?.[0]?.function?.name).toBe('sole');
  });

  it('the call of a custom tool stays one, with its input as it is', () => {
    const input = [
      { type: 'custom_tool_call', call_id: 'a', name: 'patch', input: '*** Begin "x"' },
      { type: 'custom_tool_call_output', call_id: 'a', output: 'result of a' },
    ];
    const custom = { name: 'patch', input: '*** Begin "x"' };
    expect(messagesOf(input)).toEqual([
      { role: 'assistant', content: null, tool_calls: [{ id: 'a', type: 'custom', custom }] },
      toolMessage('a'),
    ]);
  });

  it('the call of a tool in a namespace goes under the name that the tool is declared by', () => {
    const [message] = messagesOf([{ ...call('a', 'list'), namespace: 'mcp__files' }]);
    expect(message?.tool_calls?.[0]?.function?.name).toBe('mcp__files__list');
  });

  it('declared tools between calls do not part them', () => {
    const tools = { type: 'additional_tools', tools: [{ type: 'function', name: 'look' }] };
    const input = [call('a'), tools, call('b'), output('a'), output('b')];
    expect(messagesOf(input)[0]?.tool_calls).toHaveLength(2);
  });

  it('a body full of small items neither overflows nor takes for ever', () => {
    const many = Array.from({ length: 150_000 }, () => ({ role: 'user', content: 'x' }));
    expect(messagesOf(many)).toHaveLength(150_000);
    const outputs = Array.from({ length: 40_000 }, () => [call('a'), output('a', 'x')]).flat();
    expect(messagesOf(outputs)).toHaveLength(80_000);
  });
});
