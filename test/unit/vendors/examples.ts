import type { Json, Sent } from './rig.ts';

/** What each rule refuses, what it says, and the nearest request that keeps it. */
export interface Example {
  breaks: Sent;
  status: number;
  says: RegExp;
  keeps: Sent;
}

export const user = (content: unknown): Json => ({ role: 'user', content });

const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
export const chatTool = { type: 'function', function: { name: 'get_weather', parameters } };
const customTool = { type: 'custom', custom: { name: 'patch' } };
export const responsesTool = { type: 'function', name: 'get_weather', parameters };
export const messagesTool = { name: 'get_weather', input_schema: parameters };

export const chat = (model: string, more: Json = {}): Sent => ({
  body: { model, messages: [user('hello')], ...more },
});

const chatCall = (id: string, more: Json = {}): Json => ({
  id,
  type: 'function',
  function: { name: 'get_weather', arguments: '{"city":"Paris"}' },
  ...more,
});
const assistant = (calls: Json[], more: Json = {}): Json => ({
  role: 'assistant',
  content: '',
  tool_calls: calls,
  ...more,
});
const result = (id: string): Json => ({ role: 'tool', tool_call_id: id, content: 'sunny' });
const loop = (id: string, more: Json = {}): Json[] => [
  user('hello'),
  assistant([chatCall(id)], more),
  result(id),
];

const key = (authorization: string): Pick<Sent, 'headers'> => ({ headers: { authorization } });
const wrongKey = key('Bearer wrong');
const rightKey = key('Bearer sk-right');

const openai = (more: Json = {}): Sent => chat('gpt-5.6', more);
const older = (more: Json = {}): Sent => chat('gpt-4.1', more);
const responses = (more: Json = {}): Sent => ({
  path: '/v1/responses',
  body: { model: 'gpt-5.6', input: 'hello', ...more },
});
const items = (...input: Json[]): Sent => responses({ input: [user('hello'), ...input] });
const call = (more: Json = {}): Json => ({
  type: 'function_call',
  call_id: 'call_1',
  name: 'get_weather',
  arguments: '{}',
  ...more,
});
const output = (more: Json = {}): Json => ({
  type: 'function_call_output',
  call_id: 'call_1',
  output: 'sunny',
  ...more,
});
const digits = '0123456789abcdef01234567';
const strict = (more: Json): Sent =>
  responses({ tools: [{ ...responsesTool, strict: true, parameters: { ...parameters, ...more } }] });

const openaiExamples: Record<string, Example> = {
  'api-key': {
    breaks: { ...openai(), ...wrongKey },
    status: 401,
    says: /Incorrect API key/,
    keeps: { ...openai(), ...rightKey },
  },
  'unknown-parameter': {
    breaks: openai({ thinking: {} }),
    status: 400,
    says: /Unknown parameter: 'thinking'.*unknown_parameter/s,
    keeps: openai({ reasoning_effort: 'low' }),
  },
  model: { breaks: chat('gpt-9'), status: 404, says: /model_not_found/, keeps: openai() },
  'stream-options': {
    breaks: openai({ stream_options: { include_usage: true } }),
    status: 400,
    says: /only allowed when 'stream' is enabled/,
    keeps: openai({ stream_options: { include_usage: true }, stream: true }),
  },
  'max-tokens': {
    breaks: openai({ max_tokens: 50 }),
    status: 400,
    says: /Use 'max_completion_tokens' instead.*unsupported_parameter/s,
    keeps: openai({ max_completion_tokens: 50 }),
  },
  sampling: {
    breaks: responses({ temperature: 0.5 }),
    status: 400,
    says: /'temperature' does not support 0\.5.*unsupported_value/s,
    keeps: older({ temperature: 0.5 }),
  },
  efforts: {
    breaks: responses({ reasoning: { effort: 'minimal' } }),
    status: 400,
    says: /'reasoning\.effort' does not support 'minimal'/,
    keeps: responses({ reasoning: { effort: 'xhigh' } }),
  },
  'tools-need-responses': {
    breaks: openai({ tools: [chatTool] }),
    status: 400,
    says: /^.*Function tools with reasoning_effort are not supported for gpt-5\.6 in \/v1\/chat\/completions\. To use function tools, use \/v1\/responses or set reasoning_effort to 'none'\./,
    keeps: openai({ tools: [chatTool], reasoning_effort: 'none' }),
  },
  'strict-schemas': {
    breaks: strict({}),
    status: 400,
    says: /invalid_function_parameters/,
    keeps: strict({ additionalProperties: false }),
  },
  'call-id-length': {
    breaks: older({ messages: loop('x'.repeat(65)) }),
    status: 400,
    says: /messages\[1\]\.tool_calls\[0\]\.id.*maximum length 64/,
    keeps: older({ messages: loop('x'.repeat(64)) }),
  },
  'calls-answered': {
    breaks: items(call()),
    status: 400,
    says: /No tool output found for function call call_1/,
    keeps: items(call(), output()),
  },
  'results-asked': {
    breaks: older({ messages: [user('hello'), result('call_1')] }),
    status: 400,
    says: /must be a response to a preceeding message/,
    keeps: older({ messages: loop('call_1') }),
  },
  'item-type': {
    breaks: items({ type: 'thinking' }),
    status: 400,
    says: /Invalid value: 'thinking'/,
    keeps: items(call(), output()),
  },
  'item-field': {
    breaks: items(call({ reasoning_content: 'x' }), output()),
    status: 400,
    says: /Unknown parameter: 'input\[1\]\.reasoning_content'/,
    keeps: items(call({ status: 'completed' }), output()),
  },
  'content-type': {
    breaks: items({ role: 'assistant', content: [{ type: 'input_text', text: 'hi' }] }),
    status: 400,
    says: /'output_text' and 'refusal'/,
    keeps: items({ role: 'assistant', content: [{ type: 'output_text', text: 'hi' }] }),
  },
  'output-limit': {
    breaks: responses({ max_output_tokens: 15 }),
    status: 400,
    says: /integer_below_min_value/,
    keeps: responses({ max_output_tokens: 16 }),
  },
  'previous-response': {
    breaks: responses({ previous_response_id: 'resp_1' }),
    status: 400,
    says: /previous_response_not_found/,
    keeps: responses({ previous_response_id: null }),
  },
  'not-persisted': {
    breaks: items({ type: 'item_reference', id: 'rs_1' }),
    status: 404,
    says: /Item with id 'rs_1' not found/,
    keeps: items(),
  },
  'encrypted-content': {
    breaks: items({ type: 'reasoning', summary: [], encrypted_content: 'gAAAAforeign' }, call(), output()),
    status: 400,
    says: /could not be verified.*invalid_encrypted_content/s,
    keeps: items(call(), output()),
  },
  'reasoning-followed': {
    breaks: items({ type: 'reasoning', summary: [] }, user('next')),
    status: 400,
    says: /without its required following item/,
    keeps: items({ type: 'reasoning', summary: [] }, call(), output()),
  },
  'reasoning-required': {
    breaks: items(call({ id: `fc_${digits}r0` }), output()),
    status: 400,
    says: new RegExp(`without its required 'reasoning' item: 'rs_${digits}'`),
    keeps: items({ type: 'reasoning', summary: [] }, call({ id: `fc_${digits}r0` }), output()),
  },
  'outputs-asked': {
    breaks: items(output()),
    status: 400,
    says: /No tool call found for function call output with call_id call_1/,
    keeps: items(call(), output()),
  },
};

const gemini = (more: Json = {}): Sent => chat('gemini-3-pro-preview', more);
const signature = (value: string): Json => ({ extra_content: { google: { thought_signature: value } } });
const geminiImage = (type: string): Sent => {
  const image = { type: 'image_url', image_url: { url: `data:image/${type};base64,AAAA` } };
  return gemini({ messages: [user([image])] });
};
const geminiLoop = (more: Json): Sent =>
  gemini({ messages: [user('hello'), assistant([chatCall('c1', more)]), result('c1')] });
const skip = 'skip_thought_signature_validator';

const geminiExamples: Record<string, Example> = {
  'api-key': {
    breaks: { ...gemini(), ...wrongKey },
    status: 400,
    says: /^\[.*"reason":"API_KEY_INVALID"/,
    keeps: { ...gemini(), ...rightKey },
  },
  'unknown-name': {
    breaks: gemini({ seed: 1 }),
    status: 400,
    says: /^\[.*Unknown name \\"seed\\": Cannot find field/,
    keeps: gemini({ reasoning_effort: 'low' }),
  },
  'unknown-nested-name': {
    breaks: gemini({ messages: [user([{ type: 'text', text: 'hello', cache_control: {} }])] }),
    status: 400,
    says: /Unknown name \\"cache_control\\" at 'messages\[0\]\.content\[0\]'/,
    keeps: gemini({ messages: [user([{ type: 'text', text: 'hello' }])] }),
  },
  'functions-alone': {
    breaks: gemini({ tools: [customTool] }),
    status: 400,
    says: /'tools\[0\]\.type'/,
    keeps: gemini({ tools: [chatTool] }),
  },
  model: { breaks: chat('gemini-9'), status: 404, says: /NOT_FOUND/, keeps: gemini() },
  'thinking-level': {
    breaks: chat('gemini-3.8-flash', { reasoning_effort: 'minimal' }),
    status: 400,
    says: /Thinking level MINIMAL is not supported/,
    keeps: gemini({ reasoning_effort: 'minimal' }),
  },
  'image-type': {
    breaks: geminiImage('jpg'),
    status: 400,
    says: /Unsupported MIME type: image\/jpg/,
    keeps: geminiImage('jpeg'),
  },
  'last-turn': {
    breaks: chat('gemini-3.8-flash', { messages: [user('hello'), { role: 'assistant', content: 'Well' }] }),
    status: 400,
    says: /Requests ending with a model turn are not supported/,
    keeps: gemini({ messages: [user('hello'), { role: 'assistant', content: 'Well' }] }),
  },
  'signature-missing': {
    breaks: geminiLoop({}),
    status: 400,
    says: /missing a thought_signature.*default_api:get_weather/,
    keeps: geminiLoop(signature(skip)),
  },
  'signature-valid': {
    breaks: geminiLoop(signature('c2ln')),
    status: 400,
    says: /Thought signature is not valid/,
    keeps: geminiLoop(signature(skip)),
  },
};

const deepseek = (more: Json = {}): Sent => chat('deepseek-v4-pro', more);
const json = { type: 'json_schema', json_schema: { name: 'x', schema: parameters } };

const deepseekExamples: Record<string, Example> = {
  'api-key': {
    breaks: { ...deepseek(), ...wrongKey },
    status: 401,
    says: /Authentication Fails/,
    keeps: { ...deepseek(), ...rightKey },
  },
  roles: {
    breaks: deepseek({ messages: [{ role: 'developer', content: 'x' }, user('hello')] }),
    status: 400,
    says: /messages\[0\]\.role: unknown variant `developer`/,
    keeps: deepseek({ messages: [{ role: 'system', content: 'x' }, user('hello')] }),
  },
  'functions-alone': {
    breaks: deepseek({ tools: [customTool] }),
    status: 400,
    says: /tools\[0\]: missing field `function`/,
    keeps: deepseek({ tools: [chatTool] }),
  },
  model: { breaks: chat('deepseek-9'), status: 400, says: /Model Not Exist/, keeps: deepseek() },
  'response-format': {
    breaks: deepseek({ response_format: json }),
    status: 400,
    says: /unavailable now/,
    keeps: deepseek({ response_format: { type: 'json_object' } }),
  },
  'calls-answered': {
    breaks: deepseek({ messages: [user('hello'), assistant([chatCall('c1')], { reasoning_content: '' })] }),
    status: 400,
    says: /insufficient tool messages/,
    keeps: deepseek({ messages: loop('c1', { reasoning_content: '' }) }),
  },
  'results-asked': {
    breaks: deepseek({ messages: [user('hello'), result('c1')] }),
    status: 400,
    says: /must be a response to a preceding message/,
    keeps: deepseek({ messages: loop('c1', { reasoning_content: '' }) }),
  },
  'reasoning-content': {
    breaks: deepseek({ messages: loop('c1') }),
    status: 400,
    says: /`reasoning_content` in the thinking mode must be passed back/,
    keeps: deepseek({ messages: loop('c1', { reasoning_content: '' }) }),
  },
};

const picky = (...messages: Json[]): Sent => chat('picky', { messages: [user('hello'), ...messages] });
const system = { role: 'system', content: 'x' };

const pickyExamples: Record<string, Example> = {
  'functions-alone': {
    breaks: chat('picky', { tools: [customTool] }),
    status: 422,
    says: /Input should be 'function'/,
    keeps: chat('picky', { tools: [chatTool] }),
  },
  model: { breaks: chat('llama'), status: 404, says: /not found/, keeps: picky() },
  'unknown-field': {
    breaks: chat('picky', { max_completion_tokens: 9 }),
    status: 422,
    says: /extra_forbidden.*max_completion_tokens/,
    keeps: chat('picky', { max_tokens: 9 }),
  },
  'unknown-message-field': {
    breaks: picky({ role: 'assistant', content: 'hi', reasoning_content: 'x' }, user('more')),
    status: 422,
    says: /"messages",1,"assistant","reasoning_content"/,
    keeps: picky({ role: 'assistant', content: 'hi' }, user('more')),
  },
  roles: {
    breaks: chat('picky', { messages: [{ ...system, role: 'developer' }, user('hello')] }),
    status: 422,
    says: /Input tag 'developer'/,
    keeps: chat('picky', { messages: [system, user('hello')] }),
  },
  'system-first': {
    breaks: picky(system),
    status: 400,
    says: /System message must be at the beginning/,
    keeps: chat('picky', { messages: [system, user('hello')] }),
  },
  'content-null': {
    breaks: picky(assistant([chatCall('abc123DEF')], { content: null }), result('abc123DEF')),
    status: 400,
    says: /invalid message content type/,
    keeps: picky(assistant([chatCall('abc123DEF')]), result('abc123DEF')),
  },
  'call-ids': {
    breaks: picky(assistant([chatCall('call_1')]), result('call_1')),
    status: 400,
    says: /Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9/,
    keeps: picky(assistant([chatCall('abc123DEF')]), result('abc123DEF')),
  },
  'result-ids': {
    breaks: picky(result('call_1')),
    status: 400,
    says: /Tool call id was call_1/,
    keeps: picky(assistant([chatCall('abc123DEF')]), result('abc123DEF')),
  },
};

export const chatExamples: Record<string, Record<string, Example>> = {
  openai: openaiExamples,
  gemini: geminiExamples,
  deepseek: deepseekExamples,
  picky: pickyExamples,
};
