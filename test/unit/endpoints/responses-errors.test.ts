import { describe, expect, it } from 'vitest';
import { InvalidRequest } from '../../../shared/wire/invalid-request.ts';
import { parseRequest } from '../../../shared/endpoints/parse-request.ts';
import { responsesToChat } from '../../../shared/endpoints/responses/responses-endpoint.ts';
import { ResponsesRequest } from '../../../shared/endpoints/responses/request.ts';

function refusalOf(body: unknown): { code: string; param: string | null; message: string } | undefined {
  try {
    responsesToChat(parseRequest(ResponsesRequest, body));
    return undefined;
  } catch (error) {
    if (!(error instanceof InvalidRequest)) throw error;
    return { code: error.code, param: error.param, message: error.message };
  }
}

const user = { role: 'user', content: 'hi' };
const asking = (...input: unknown[]) => ({ model: 'm', input });
const long = 'n'.repeat(65);
const withContent = (content: unknown) => asking(user, { role: 'user', content });

describe('a request is refused with the field at fault', () => {
  it.each([
    ['no model', { input: 'hi' }, 'model', 'missing_required_parameter'],
    ['an empty model', { model: '', input: 'hi' }, 'model', 'invalid_value'],
    ['no input', { model: 'm' }, 'input', 'missing_required_parameter'],
    ['a null input', { model: 'm', input: null }, 'input', 'missing_required_parameter'],
    ['an empty text', { model: 'm', input: '' }, 'input', 'invalid_value'],
    ['an empty list', { model: 'm', input: [] }, 'input', 'invalid_value'],
    ['a number as input', { model: 'm', input: 5 }, 'input', 'invalid_value'],
    ['an item that is text', asking('hi'), 'input[0]', 'invalid_type'],
    ['only tools', asking({ type: 'additional_tools', tools: [] }), 'input', 'invalid_value'],
    [
      'instructions as parts',
      { model: 'm', input: 'x', instructions: ['y'] },
      'instructions',
      'invalid_type',
    ],
    [
      'a limit of zero',
      { model: 'm', input: 'x', max_output_tokens: 0 },
      'max_output_tokens',
      'invalid_value',
    ],
    ['a temperature as text', { model: 'm', input: 'x', temperature: 'hot' }, 'temperature', 'invalid_type'],
    ['two answers', { model: 'm', input: 'x', n: 2 }, 'n', 'unsupported_parameter'],
    ['a number of answers as text', { model: 'm', input: 'x', n: '2' }, 'n', 'invalid_type'],
    ['a stop that is a number', { model: 'm', input: 'x', stop: 5 }, 'stop', ''],
    ['stream as text', { model: 'm', input: 'x', stream: 'yes' }, 'stream', 'invalid_type'],
    ['a format without type', { model: 'm', input: 'x', text: { format: {} } }, 'text.format.type', ''],
    [
      'an earlier response',
      { model: 'm', input: 'x', previous_response_id: 'resp-1' },
      'previous_response_id',
      'unsupported_parameter',
    ],
    [
      'a conversation',
      { model: 'm', input: 'x', conversation: { id: 'conv_1' } },
      'conversation',
      'unsupported_parameter',
    ],
    [
      'a stored prompt',
      { model: 'm', input: 'x', prompt: { id: 'pmpt_1' } },
      'prompt',
      'unsupported_parameter',
    ],
    [
      'a long tool name',
      { model: 'm', input: 'x', tools: [{ type: 'function', name: long }] },
      'tools[0].name',
      'string_above_max_length',
    ],
    [
      'a long name in Chat Completions form',
      { model: 'm', input: 'x', tools: [{ type: 'custom', custom: { name: long } }] },
      'tools[0].name',
      'string_above_max_length',
    ],
    [
      'a long name of a namespace',
      { model: 'm', input: 'x', tools: [{ type: 'namespace', name: long, tools: [] }] },
      'tools[0].name',
      'string_above_max_length',
    ],
    [
      'a long name inside a namespace',
      {
        model: 'm',
        input: 'x',
        tools: [{ type: 'namespace', name: 'n', tools: [{}, { type: 'function', name: long }] }],
      },
      'tools[0].tools[1].name',
      'string_above_max_length',
    ],
    [
      'a long name of a later tool',
      asking(user, { type: 'additional_tools', tools: [{ type: 'function', name: long }] }),
      'input[1].tools[0].name',
      'string_above_max_length',
    ],
    [
      'a long called name',
      asking({ type: 'function_call', call_id: 'c', name: long }),
      'input[0].name',
      'string_above_max_length',
    ],
    [
      'a long called namespace',
      asking({ type: 'custom_tool_call', call_id: 'c', name: 'f', namespace: long }),
      'input[0].namespace',
      'string_above_max_length',
    ],
  ])('%s', (_name, body, param, code) => {
    expect(refusalOf(body)).toMatchObject({ param, ...(code && { code }) });
  });

  it.each(['item_reference', 'web_search_call', 'computer_call_output', 'local_shell_call'])(
    'an item of type %s',
    (type) => {
      expect(refusalOf(asking(user, { type, id: 'x' }))).toMatchObject({
        param: 'input[1].type',
        code: 'unsupported_input_item',
      });
    },
  );

  it("a trigger of OpenAI's compaction, naming the setting that keeps Codex from it", () => {
    expect(refusalOf(asking(user, { type: 'compaction_trigger' }))).toMatchObject({
      param: 'input[1].type',
      code: 'unsupported_input_item',
      message: expect.stringContaining('name of its model provider'),
    });
  });

  it.each(['gAAAAABfernet', 'relay2.1.x', 5, {}])('reasoning that another server encrypted: %j', (text) => {
    const item = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: text };
    expect(refusalOf(asking(user, item))).toMatchObject({
      param: 'input[1].type',
      code: 'unsupported_input_item',
    });
  });

  it('an item without type and role', () => {
    expect(refusalOf(asking(user, user, { content: 'x' }))).toMatchObject({ param: 'input[2].type' });
  });

  it.each(['input_audio', 'reasoning_text'])('a part of type %s', (type) => {
    const refusal = refusalOf(withContent([{ type: 'input_text', text: 'x' }, { type }]));
    expect(refusal).toMatchObject({ param: 'input[1].content[1].type', code: 'unsupported_content_type' });
  });

  it.each([
    ['content as a number', withContent(5), 'input[1].content'],
    ['content as an object', withContent({ text: 'x' }), 'input[1].content'],
    ['a part that is text', withContent(['x']), 'input[1].content[0].type'],
    ['a text part without text', withContent([{ type: 'input_text' }]), 'input[1].content[0].text'],
    [
      'an image that is a file',
      withContent([{ type: 'input_image', file_id: 'f' }]),
      'input[1].content[0].image_url',
    ],
    [
      'a file that is stored elsewhere',
      withContent([{ type: 'input_file', file_id: 'file-1' }]),
      'input[1].content[0].file_data',
    ],
    ['a role of chat', asking({ role: 'tool', content: 'x' }), 'input[0].role'],
    ['a message without role', asking({ type: 'message', content: 'x' }), 'input[0].role'],
    [
      'a call without call_id',
      asking({ type: 'function_call', name: 'f', arguments: '{}' }),
      'input[0].call_id',
    ],
    ['an output without call_id', asking(user, { type: 'function_call_output' }), 'input[1].call_id'],
    [
      'an output without its call',
      asking(user, { type: 'function_call_output', call_id: 'c', output: 'x' }),
      'input[1].call_id',
    ],
    [
      'a second output of one call',
      asking(
        { type: 'function_call', call_id: 'c', name: 'f' },
        { type: 'function_call_output', call_id: 'c', output: 'x' },
        { type: 'function_call_output', call_id: 'c', output: 'y' },
      ),
      'input[2].call_id',
    ],
    ['a call without name, without tools', asking({ type: 'function_call', call_id: 'c' }), 'input[0].name'],
    [
      'a call without name, with two tools',
      {
        ...asking({ type: 'function_call', call_id: 'c' }),
        tools: [
          { type: 'function', name: 'a' },
          { type: 'function', name: 'b' },
        ],
      },
      'input[0].name',
    ],
    [
      'a part of an output',
      asking(
        { type: 'function_call', call_id: 'c', name: 'f' },
        { type: 'function_call_output', call_id: 'c', output: [{ type: 'input_video' }] },
      ),
      'input[1].output[0].type',
    ],
    [
      'a file of the vendor in an output',
      asking(
        { type: 'function_call', call_id: 'c', name: 'f' },
        {
          type: 'function_call_output',
          call_id: 'c',
          output: [{ type: 'input_file', file_id: 'file-1' }],
        },
      ),
      'input[1].output[0].file_data',
    ],
    [
      'an output that is an object',
      asking(
        { type: 'function_call', call_id: 'c', name: 'f' },
        { type: 'function_call_output', call_id: 'c', output: { a: 1 } },
      ),
      'input[1].output',
    ],
  ])('%s', (_name, body, param) => {
    expect(refusalOf(body)).toMatchObject({ param });
  });

  it('a foreign type that is very long is not repeated whole', () => {
    const long = 'x'.repeat(5000);
    expect(refusalOf(asking({ type: long }))?.message.length).toBeLessThan(300);
    expect(refusalOf(withContent([{ type: long }]))?.message.length).toBeLessThan(300);
  });

  it('a stored conversation is refused with the way out', () => {
    const { message } = refusalOf({ model: 'm', input: 'x', previous_response_id: 'resp-1' }) ?? {};
    expect(message).toContain('store: false');
  });
});
