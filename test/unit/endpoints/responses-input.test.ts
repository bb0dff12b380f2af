import { describe, expect, it } from 'vitest';
import { responsesToChat } from '../../../shared/endpoints/responses/read.ts';
import type { ChatMessage } from '../../../shared/wire/chat-request.ts';
import type { InputItem } from '../../../shared/endpoints/responses/responses-request.ts';

const messagesOf = (input: InputItem[] | string, more: object = {}): ChatMessage[] =>
  responsesToChat({ model: 'm', input, ...more }).chat.messages;

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

  it('an output of parts is their text; its images follow as shown by the user', () => {
    const image = { type: 'input_image', image_url: 'https://images.example/1.png' };
    const parts = [{ type: 'input_text', text: 'one' }, image, { type: 'input_text', text: 'two' }];
    expect(messagesOf([call('a'), call('b'), output('a', parts), output('b')]).slice(1)).toEqual([
      { role: 'tool', tool_call_id: 'a', content: 'one\ntwo' },
      toolMessage('b'),
      { role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://images.example/1.png' } }] },
    ]);
  });

  it('a call without a name takes the one tool that there is', () => {
    const tools = [{ type: 'function', name: 'sole' }, { type: 'web_search' }];
    const [message] = messagesOf([{ type: 'function_call', call_id: 'a', arguments: '{}' }], { tools });
    expect(message?.tool_calls?.[0]?.function?.name).toBe('sole');
  });

  it('the call of a custom tool is one of a function with its input', () => {
    const input = [
      { type: 'custom_tool_call', call_id: 'a', name: 'patch', input: '*** Begin "x"' },
      { type: 'custom_tool_call_output', call_id: 'a', output: 'result of a' },
    ];
    expect(messagesOf(input)).toEqual([
      {
        role: 'assistant',
        content: null,
        tool_calls: [chatCall('a', 'patch', '{"input":"*** Begin \\"x\\""}')],
      },
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
