import type { Json, Sent } from './rig.ts';

/** A request that breaks the rule, its error text, the nearest valid request, and the status if it is not 400. */
export type Example = [breaks: Sent, says: RegExp, keeps: Sent, status?: number];

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

const embed = (more: Json = {}, model = 'text-embedding-3-small'): Sent => ({
  path: '/v1/embeddings',
  body: { model, input: 'hello', ...more },
});
const many = (count: number): string[] => Array.from({ length: count }, () => 'a');

const openaiExamples: Record<string, Example> = {
  'embedding-fields': [embed({ input_type: 'x' }), /Unrecognized request argument/, embed({ user: 'x' })],
  'embedding-model': [embed({}, 'ada'), /model_not_found/, embed({}, 'text-embedding-ada-002'), 404],
  'embedding-input': [
    embed({ input: many(2049) }),
    /'\$\.input' is invalid/,
    embed({ input: many(2048), dimensions: 2 }),
  ],
  'embedding-dimensions': [
    embed({ dimensions: 2 }, 'text-embedding-ada-002'),
    /does not support specifying dimensions/,
    embed({ dimensions: 2 }),
  ],
  'api-key': [{ ...openai(), ...wrongKey }, /Incorrect API key/, { ...openai(), ...rightKey }, 401],
  'unknown-parameter': [
    openai({ thinking: {} }),
    /Unknown parameter: 'thinking'.*unknown_parameter/s,
    openai({ reasoning_effort: 'low' }),
  ],
  model: [chat('gpt-9'), /model_not_found/, openai(), 404],
  'stream-options': [
    openai({ stream_options: { include_usage: true } }),
    /only allowed when 'stream' is enabled/,
    openai({ stream_options: { include_usage: true }, stream: true }),
  ],
  'max-tokens': [
    openai({ max_tokens: 50 }),
    /Use 'max_completion_tokens' instead.*unsupported_parameter/s,
    openai({ max_completion_tokens: 50 }),
  ],
  sampling: [
    responses({ temperature: 0.5 }),
    /'temperature' does not support 0\.5.*unsupported_value/s,
    older({ temperature: 0.5 }),
  ],
  efforts: [
    responses({ reasoning: { effort: 'minimal' } }),
    /'reasoning\.effort' does not support 'minimal'/,
    responses({ reasoning: { effort: 'xhigh' } }),
  ],
  'tools-need-responses': [
    openai({ tools: [chatTool] }),
    /^.*Function tools with reasoning_effort are not supported for gpt-5\.6 in \/v1\/chat\/completions\. To use function tools, use \/v1\/responses or set reasoning_effort to 'none'\./,
    openai({ tools: [chatTool], reasoning_effort: 'none' }),
  ],
  'strict-schemas': [strict({}), /invalid_function_parameters/, strict({ additionalProperties: false })],
  'call-id-length': [
    older({ messages: loop('x'.repeat(65)) }),
    /messages\[1\]\.tool_calls\[0\]\.id.*maximum length 64/,
    older({ messages: loop('x'.repeat(64)) }),
  ],
  'calls-answered': [items(call()), /No tool output found for function call call_1/, items(call(), output())],
  'results-asked': [
    older({ messages: [user('hello'), result('call_1')] }),
    /must be a response to a preceeding message/,
    older({ messages: loop('call_1') }),
  ],
  'item-type': [items({ type: 'thinking' }), /Invalid value: 'thinking'/, items(call(), output())],
  'item-field': [
    items(call({ reasoning_content: 'x' }), output()),
    /Unknown parameter: 'input\[1\]\.reasoning_content'/,
    items(call({ status: 'completed' }), output()),
  ],
  'content-type': [
    items({ role: 'assistant', content: [{ type: 'input_text', text: 'hi' }] }),
    /'output_text' and 'refusal'/,
    items({ role: 'assistant', content: [{ type: 'output_text', text: 'hi' }] }),
  ],
  'output-limit': [
    responses({ max_output_tokens: 15 }),
    /integer_below_min_value/,
    responses({ max_output_tokens: 16 }),
  ],
  'previous-response': [
    responses({ previous_response_id: 'resp_1' }),
    /previous_response_not_found/,
    responses({ previous_response_id: null }),
  ],
  'not-persisted': [
    items({ type: 'item_reference', id: 'rs_1' }),
    /Item with id 'rs_1' not found/,
    items(),
    404,
  ],
  'encrypted-content': [
    items({ type: 'reasoning', summary: [], encrypted_content: 'gAAAAforeign' }, call(), output()),
    /could not be verified.*invalid_encrypted_content/s,
    items(call(), output()),
  ],
  'trigger-last': [
    items({ type: 'compaction_trigger' }, user('next')),
    /must be the final input item/,
    items(user('next'), { type: 'compaction_trigger' }),
  ],
  'reasoning-followed': [
    items({ type: 'reasoning', summary: [] }, user('next')),
    /without its required following item/,
    items({ type: 'reasoning', summary: [] }, call(), output()),
  ],
  'reasoning-required': [
    items(call({ id: `fc_${digits}r0` }), output()),
    new RegExp(`without its required 'reasoning' item: 'rs_${digits}'`),
    items({ type: 'reasoning', summary: [] }, call({ id: `fc_${digits}r0` }), output()),
  ],
  'outputs-asked': [
    items(output()),
    /No tool call found for function call output with call_id call_1/,
    items(call(), output()),
  ],
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
  'api-key': [{ ...gemini(), ...wrongKey }, /^\[.*"reason":"API_KEY_INVALID"/, { ...gemini(), ...rightKey }],
  'unknown-name': [
    gemini({ seed: 1 }),
    /^\[.*Unknown name \\"seed\\": Cannot find field/,
    gemini({ reasoning_effort: 'low' }),
  ],
  'unknown-nested-name': [
    gemini({ messages: [user([{ type: 'text', text: 'hello', cache_control: {} }])] }),
    /Unknown name \\"cache_control\\" at 'messages\[0\]\.content\[0\]'/,
    gemini({ messages: [user([{ type: 'text', text: 'hello' }])] }),
  ],
  'functions-alone': [gemini({ tools: [customTool] }), /'tools\[0\]\.type'/, gemini({ tools: [chatTool] })],
  model: [chat('gemini-9'), /NOT_FOUND/, gemini(), 404],
  'thinking-level': [
    chat('gemini-3.8-flash', { reasoning_effort: 'minimal' }),
    /Thinking level MINIMAL is not supported/,
    gemini({ reasoning_effort: 'minimal' }),
  ],
  'image-type': [geminiImage('jpg'), /Unsupported MIME type: image\/jpg/, geminiImage('jpeg')],
  'last-turn': [
    chat('gemini-3.8-flash', { messages: [user('hello'), { role: 'assistant', content: 'Well' }] }),
    /Requests ending with a model turn are not supported/,
    gemini({ messages: [user('hello'), { role: 'assistant', content: 'Well' }] }),
  ],
  'signature-missing': [
    geminiLoop({}),
    /missing a thought_signature.*default_api:get_weather/,
    geminiLoop(signature(skip)),
  ],
  'signature-valid': [
    geminiLoop(signature('c2ln')),
    /Thought signature is not valid/,
    geminiLoop(signature(skip)),
  ],
};

const deepseek = (more: Json = {}): Sent => chat('deepseek-v4-pro', more);
const json = { type: 'json_schema', json_schema: { name: 'x', schema: parameters } };

const deepseekExamples: Record<string, Example> = {
  'api-key': [{ ...deepseek(), ...wrongKey }, /Authentication Fails/, { ...deepseek(), ...rightKey }, 401],
  roles: [
    deepseek({ messages: [{ role: 'developer', content: 'x' }, user('hello')] }),
    /messages\[0\]\.role: unknown variant `developer`/,
    deepseek({ messages: [{ role: 'system', content: 'x' }, user('hello')] }),
  ],
  efforts: [
    deepseek({ reasoning_effort: 'extreme' }),
    /unknown variant `extreme`, expected one of .*`max`/,
    deepseek({ reasoning_effort: 'ultra' }),
  ],
  'functions-alone': [
    deepseek({ tools: [customTool] }),
    /tools\[0\]: missing field `function`/,
    deepseek({ tools: [chatTool] }),
  ],
  model: [chat('deepseek-9'), /Model Not Exist/, deepseek()],
  'response-format': [
    deepseek({ response_format: json }),
    /unavailable now/,
    deepseek({ response_format: { type: 'json_object' } }),
  ],
  'calls-answered': [
    deepseek({ messages: [user('hello'), assistant([chatCall('c1')], { reasoning_content: '' })] }),
    /insufficient tool messages/,
    deepseek({ messages: loop('c1', { reasoning_content: '' }) }),
  ],
  'results-asked': [
    deepseek({ messages: [user('hello'), result('c1')] }),
    /must be a response to a preceding message/,
    deepseek({ messages: loop('c1', { reasoning_content: '' }) }),
  ],
  'reasoning-content': [
    deepseek({ messages: loop('c1') }),
    /`reasoning_content` in the thinking mode must be passed back/,
    deepseek({ messages: loop('c1', { reasoning_content: '' }) }),
  ],
};

const picky = (...messages: Json[]): Sent => chat('picky', { messages: [user('hello'), ...messages] });
const system = { role: 'system', content: 'x' };

const pickyExamples: Record<string, Example> = {
  'functions-alone': [
    chat('picky', { tools: [customTool] }),
    /Input should be 'function'/,
    chat('picky', { tools: [chatTool] }),
    422,
  ],
  model: [chat('llama'), /not found/, picky(), 404],
  'unknown-field': [
    chat('picky', { max_completion_tokens: 9 }),
    /extra_forbidden.*max_completion_tokens/,
    chat('picky', { max_tokens: 9 }),
    422,
  ],
  'unknown-message-field': [
    picky({ role: 'assistant', content: 'hi', reasoning_content: 'x' }, user('more')),
    /"messages",1,"assistant","reasoning_content"/,
    picky({ role: 'assistant', content: 'hi' }, user('more')),
    422,
  ],
  roles: [
    chat('picky', { messages: [{ ...system, role: 'developer' }, user('hello')] }),
    /Input tag 'developer'/,
    chat('picky', { messages: [system, user('hello')] }),
    422,
  ],
  'system-first': [
    picky(system),
    /System message must be at the beginning/,
    chat('picky', { messages: [system, user('hello')] }),
  ],
  'content-null': [
    picky(assistant([chatCall('abc123DEF')], { content: null }), result('abc123DEF')),
    /invalid message content type/,
    picky(assistant([chatCall('abc123DEF')]), result('abc123DEF')),
  ],
  'call-ids': [
    picky(assistant([chatCall('call_1')]), result('call_1')),
    /Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9/,
    picky(assistant([chatCall('abc123DEF')]), result('abc123DEF')),
  ],
  'result-ids': [
    picky(result('call_1')),
    /Tool call id was call_1/,
    picky(assistant([chatCall('abc123DEF')]), result('abc123DEF')),
  ],
};

export const chatExamples: Record<string, Record<string, Example>> = {
  openai: openaiExamples,
  gemini: geminiExamples,
  deepseek: deepseekExamples,
  picky: pickyExamples,
};
