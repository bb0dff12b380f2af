import { describe, expect, it } from 'vitest';
import { InvalidRequest } from '../../../shared/wire/invalid-request.ts';
import { parseRequest } from '../../../shared/endpoints/parse-request.ts';
import { translateRequest } from '../../../shared/endpoints/responses/responses-endpoint.ts';
import { ResponsesRequest } from '../../../shared/endpoints/responses/request.ts';

function refusalOf(body: unknown): { code: string; param: string | null; message: string } | undefined {
  try {
    translateRequest(parseRequest(ResponsesRequest, body));
    return undefined;
  } catch (error) {
    if (!(error instanceof InvalidRequest)) throw error;
    return { code: error.code, param: error.param, message: error.message };
  }
}

const user = { role: 'user', content: 'hi' };
const asked = (more: object) => ({ model: 'm', input: 'x', ...more });
const asking = (...input: unknown[]) => ({ model: 'm', input });
const withTool = (tool: object) => asked({ tools: [tool] });
const withContent = (content: unknown) => asking(user, { role: 'user', content });
const call = { type: 'function_call', call_id: 'c', name: 'f' };
const output = (content: unknown) => ({ type: 'function_call_output', call_id: 'c', output: content });
const name = 'n'.repeat(65);
const tool = { type: 'function', name };

describe('a request is rejected with the invalid field', () => {
  it.each<[code: string, cases: [body: unknown, param: string][]]>([
    [
      'missing_required_parameter',
      [
        [{ input: 'hi' }, 'model'],
        [{ model: 'm' }, 'input'],
        [{ model: 'm', input: null }, 'input'],
        [withContent([{ type: 'input_image', file_id: 'f' }]), 'input[1].content[0].image_url'],
        [withContent([{ type: 'input_file', file_id: 'f' }]), 'input[1].content[0].file_data'],
        [asking(call, output([{ type: 'input_file', file_id: 'f' }])), 'input[1].output[0].file_data'],
        [asking({ type: 'function_call', name: 'f', arguments: '{}' }), 'input[0].call_id'],
        [asking(user, { type: 'function_call_output' }), 'input[1].call_id'],
        [asking({ type: 'function_call', call_id: 'c' }), 'input[0].name'],
        [{ ...asking({ ...call, name: '' }), tools: [{ name: 'a' }, { name: 'b' }] }, 'input[0].name'],
      ],
    ],
    [
      'invalid_value',
      [
        [asked({ model: '' }), 'model'],
        [asked({ input: '' }), 'input'],
        [asked({ input: [] }), 'input'],
        [asked({ input: 5 }), 'input'],
        [asking({ type: 'additional_tools', tools: [] }), 'input'],
        [asked({ max_output_tokens: 0 }), 'max_output_tokens'],
        [asked({ stop: 5 }), 'stop'],
        [asking({ role: 'tool', content: 'x' }), 'input[0].role'],
        [asking({ type: 'message', content: 'x' }), 'input[0].role'],
        [asking(user, output('x')), 'input[1].call_id'],
        [asking(call, output('x'), output('y')), 'input[2].call_id'],
      ],
    ],
    [
      'invalid_type',
      [
        [asking('hi'), 'input[0]'],
        [asked({ instructions: ['y'] }), 'instructions'],
        [asked({ temperature: 'hot' }), 'temperature'],
        [asked({ n: '2' }), 'n'],
        [asked({ stream: 'yes' }), 'stream'],
        [withContent(5), 'input[1].content'],
        [withContent({ text: 'x' }), 'input[1].content'],
        [withContent(['x']), 'input[1].content[0].type'],
        [withContent([{ type: 'input_text' }]), 'input[1].content[0].text'],
        [asking(call, output({ a: 1 })), 'input[1].output'],
      ],
    ],
    [
      'unsupported_parameter',
      [
        [asked({ n: 2 }), 'n'],
        [asked({ conversation: { id: 'conv_1' } }), 'conversation'],
        [asked({ prompt: { id: 'pmpt_1' } }), 'prompt'],
        [asked({ previous_response_id: 'resp-1' }), 'previous_response_id'],
      ],
    ],
    [
      'string_above_max_length',
      [
        [withTool(tool), 'tools[0].name'],
        [withTool({ type: 'custom', custom: { name } }), 'tools[0].name'],
        [withTool({ type: 'namespace', name, tools: [] }), 'tools[0].name'],
        [withTool({ type: 'namespace', name: 'n', tools: [{}, tool] }), 'tools[0].tools[1].name'],
        [asking(user, { type: 'additional_tools', tools: [tool] }), 'input[1].tools[0].name'],
        [asking({ ...call, name }), 'input[0].name'],
        [asking({ ...call, type: 'custom_tool_call', namespace: name }), 'input[0].namespace'],
      ],
    ],
    [
      'unsupported_input_item',
      [
        ...['item_reference', 'web_search_call', 'computer_call_output'].map((type): [unknown, string] => [
          asking(user, { type, id: 'x' }),
          'input[1].type',
        ]),
        [asking(user, user, { content: 'x' }), 'input[2].type'],
      ],
    ],
    [
      'unsupported_content_type',
      [
        [
          withContent([{ type: 'input_text', text: 'x' }, { type: 'input_audio' }]),
          'input[1].content[1].type',
        ],
        [asking(call, output([{ type: 'input_video' }])), 'input[1].output[0].type'],
      ],
    ],
  ])('%s', (code, cases) => {
    for (const [body, param] of cases) expect(refusalOf(body)).toMatchObject({ param, code });
  });

  it('an error message names a way out, and never repeats a very long value', () => {
    expect(refusalOf(asked({ previous_response_id: 'resp-1' }))?.message).toContain('store: false');
    const type = 'x'.repeat(5000);
    for (const body of [asking({ type }), withContent([{ type }])])
      expect(refusalOf(body)?.message.length).toBeLessThan(300);
  });
});
