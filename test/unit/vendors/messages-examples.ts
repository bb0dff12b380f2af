import { messagesTool, user, type Example } from './examples.ts';
import type { Json, Sent } from './rig.ts';

const body = (more: Json = {}): Json => ({
  model: 'claude-opus-5-5',
  max_tokens: 4000,
  messages: [user('hello')],
  ...more,
});
const opus = (more: Json = {}): Sent => ({ body: body(more) });
const haiku = (more: Json = {}): Sent => ({ body: body({ model: 'claude-haiku-4-5', ...more }) });
const version = (value: string, more: Record<string, string> = {}): Pick<Sent, 'headers'> => ({
  headers: { 'anthropic-version': value, ...more },
});
const assistant = (...content: Json[]): Json => ({ role: 'assistant', content });
const use = (id: string): Json => ({ type: 'tool_use', id, name: 'get_weather', input: {} });
const result = (id: string): Json => ({ type: 'tool_result', tool_use_id: id, content: 'sunny' });
const loop = (id: string): Json[] => [user('hello'), assistant(use(id)), user([result(id)])];
const budget = { type: 'enabled', budget_tokens: 1024 };
const tools = [messagesTool];
const text = (more: Json = {}): Json => ({ type: 'text', text: 'hello', ...more });
const marked = (ttl?: string): Json => text({ cache_control: { type: 'ephemeral', ...(ttl && { ttl }) } });
const marks = (count: number): Json[] => Array.from({ length: count }, () => marked());
const format = (more: Json): Json => ({
  output_config: { format: { type: 'json_schema', schema: { type: 'object', properties: {}, ...more } } },
});
const formatOf = (schema: Json): Sent => opus({ output_config: { format: { type: 'json_schema', schema } } });
const closed = (properties: Json): Json => ({ type: 'object', properties, additionalProperties: false });
const strictTool = (input_schema: Json): Sent =>
  opus({ tools: [{ name: 'look', strict: true, input_schema }] });
const inline = (media_type: string): Sent =>
  opus({ messages: [user([{ type: 'image', source: { type: 'base64', media_type, data: 'AA==' } }])] });
const thought = (signature: string): Json => ({ type: 'thinking', thinking: 'x', signature });
const documentBlock = { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'x' } };

const clearing = (...types: string[]): Json => ({
  context_management: { edits: types.map((type) => ({ type })) },
});
const named = (beta: string, sent: Sent): Sent => ({ ...sent, headers: { 'anthropic-beta': beta } });
const searching = 'tool-search-tool-2025-10-19';
const referring = (tool_name: string): Json[] => {
  const content = [{ type: 'tool_reference', tool_name }];
  return [user('hello'), assistant(use('a')), user([{ type: 'tool_result', tool_use_id: 'a', content }])];
};
const clearingBeta = 'context-management-2025-06-27';

/** The rules that Anthropic and Bedrock share. */
export const sharedExamples: Record<string, Example> = {
  'beta-fields': [
    opus(clearing('clear_tool_uses_20250919')),
    /context_management: Extra inputs are not permitted/,
    named(clearingBeta, opus(clearing('clear_tool_uses_20250919'))),
  ],
  'clear-thinking': [
    named(clearingBeta, haiku(clearing('clear_thinking_20251015'))),
    /`clear_thinking_20251015` strategy requires `thinking` to be enabled or adaptive/,
    named(clearingBeta, opus(clearing('clear_thinking_20251015'))),
  ],
  body: [
    opus({ messages: [user([text({ citation: 1 })])] }),
    /messages\.0\.content\.0\.citation: Extra inputs are not permitted/,
    opus({ messages: [user([text()])] }),
  ],
  model: [opus({ model: 'claude-9' }), /not_found_error/, opus(), 404],
  'first-message': [
    opus({ messages: [assistant(text()), user('hello')] }),
    /first message must use the/,
    opus(),
  ],
  'system-turns': [
    haiku({ messages: [user('hello'), { role: 'system', content: 'be brief' }] }),
    /messages\.1: role 'system' is not supported on this model/,
    opus({ messages: [user('hello'), { role: 'system', content: 'be brief' }] }),
  ],
  'no-prefill': [
    opus({ messages: [user('hello'), assistant(text())] }),
    /does not support assistant message prefill/,
    haiku({ messages: [user('hello'), assistant(text())] }),
  ],
  'empty-content': [
    opus({ system: [text({ text: '' })] }),
    /text content blocks must be non-empty/,
    opus({ system: [text()] }),
  ],
  'assistant-documents': [
    {
      ...opus({ messages: [user('hello'), assistant(documentBlock), user('so?')] }),
      ...version('2026-10-21'),
    },
    /document blocks are not permitted in assistant messages/,
    opus({ messages: [user('hello'), assistant(documentBlock), user('so?')] }),
  ],
  'tool-names': [opus({ tools: [messagesTool, messagesTool] }), /Tool names must be unique/, opus({ tools })],
  'tool-references': [
    named(searching, opus({ tools, messages: referring('other') })),
    /Tool reference 'other' not found in available tools/,
    named(searching, opus({ tools, messages: referring('get_weather') })),
  ],
  'choice-with-tools': [
    opus({ tool_choice: { type: 'auto' } }),
    /only be specified while providing tools/,
    opus({ tool_choice: { type: 'auto' }, tools }),
  ],
  'tool-use-ids': [
    opus({ tools, messages: loop('search:0') }),
    /messages\.1\.content\.0\.tool_use\.id: String should match pattern/,
    opus({ tools, messages: loop('search_0') }),
  ],
  'unique-ids': [
    opus({ tools, messages: [...loop('a'), ...loop('a')] }),
    /`tool_use` ids must be unique/,
    opus({ tools, messages: [...loop('a'), ...loop('b')] }),
  ],
  'calls-answered': [
    opus({ tools, messages: [user('hello'), assistant(use('a')), user('so?')] }),
    /messages\.1: `tool_use` ids were found without `tool_result` blocks immediately after: a\./,
    opus({ tools, messages: loop('a') }),
  ],
  'results-asked': [
    opus({ tools, messages: [user([result('a')])] }),
    /unexpected `tool_use_id` found in `tool_result` blocks: a/,
    opus({ tools, messages: loop('a') }),
  ],
  'results-first': [
    opus({ tools, messages: [user('hello'), assistant(use('a')), user([text(), result('a')])] }),
    /without `tool_result` blocks immediately after/,
    opus({ tools, messages: [user('hello'), assistant(use('a')), user([result('a'), text()])] }),
  ],
  'output-max': [opus({ max_tokens: 128_001 }), /max_tokens: 128001 > 128000/, opus({ max_tokens: 128_000 })],
  'sampling-refused': [
    opus({ temperature: 1 }),
    /`temperature` is deprecated for this model/,
    haiku({ temperature: 0.5 }),
  ],
  'one-of-sampling': [
    haiku({ temperature: 0.5, top_p: 0.9 }),
    /cannot both be specified/,
    haiku({ top_p: 0.9 }),
  ],
  'thinking-sampling': [
    haiku({ thinking: budget, temperature: 0.5 }),
    /`temperature` may only be set to 1 when thinking is enabled/,
    haiku({ thinking: budget, temperature: 1 }),
  ],
  'thinking-type': [
    opus({ thinking: { type: 'disabled' } }),
    /thinking\.type\.disabled.* is not supported for this model/,
    opus({ thinking: { type: 'adaptive' } }),
  ],
  'thinking-budget': [
    haiku({ thinking: budget, max_tokens: 1024 }),
    /`max_tokens` must be greater than `thinking\.budget_tokens`/,
    haiku({ thinking: budget }),
  ],
  effort: [
    haiku({ output_config: { effort: 'low' } }),
    /does not support the effort parameter/,
    opus({ output_config: { effort: 'max' } }),
  ],
  'format-schema': [
    opus(format({})),
    /'additionalProperties' must be explicitly set to false/,
    opus(format({ additionalProperties: false })),
  ],
  'format-keywords': [
    formatOf(closed({ age: { type: 'integer', minimum: 0 } })),
    /For 'integer' type, properties minimum are not supported/,
    formatOf(closed({ age: { type: 'integer' } })),
  ],
  'format-recursion': [
    formatOf({ $ref: '#/$defs/a', $defs: { a: closed({ a: { $ref: '#/$defs/a' } }) } }),
    /Recursive schemas/,
    formatOf({ $ref: '#/$defs/a', $defs: { a: closed({ a: { type: 'string' } }) } }),
  ],
  'strict-tools': [
    strictTool(closed({ a: { oneOf: [{ type: 'string' }, { type: 'null' }] } })),
    /tools\.custom\.input_schema: For/,
    strictTool(closed({ a: { anyOf: [{ type: 'string' }, { type: 'null' }] } })),
  ],
  'image-type': [
    inline('image/jpg'),
    /messages\.0\.content\.0\.image\.source\.base64\.media_type: Input should be 'image\/jpeg'/,
    inline('image/jpeg'),
  ],
  'forced-choice': [
    opus({ tools, tool_choice: { type: 'any' } }),
    /tool_choice: type .*tool.* and .*any.* are not supported for this model/,
    haiku({ tools, tool_choice: { type: 'any' } }),
  ],
  'forced-choice-thinking': [
    haiku({ tools, tool_choice: { type: 'any' }, thinking: budget }),
    /Thinking may not be enabled when tool_choice forces tool use/,
    haiku({ tools, tool_choice: { type: 'auto' }, thinking: budget }),
  ],
  breakpoints: [
    opus({ messages: [user(marks(5))] }),
    /A maximum of 4 blocks with cache_control may be provided\. Found 5/,
    opus({ messages: [user(marks(4))] }),
  ],
  'breakpoint-order': [
    opus({ messages: [user([marked('5m'), marked('1h')])] }),
    /must not come after a ttl='5m'/,
    opus({ messages: [user([marked('1h'), marked('5m')])] }),
  ],
  'thinking-signature': [
    opus({ messages: [user('hello'), assistant(thought('sig'), text()), user('so?')] }),
    /messages\.1\.content\.0: Invalid `signature` in `thinking` block/,
    opus({ messages: [user('hello'), assistant(text()), user('so?')] }),
  ],
  'thinking-first': [
    haiku({ tools, thinking: budget, messages: loop('a') }),
    /Expected `thinking` or `redacted_thinking`, but found `tool_use`/,
    haiku({ tools, messages: loop('a') }),
  ],
};

/** Tested in `messages.test.ts`, with thinking that the double generated. */
export const shownElsewhere = ['thinking-unchanged', 'thinking-bound'];

const keyed = (header: string, value: string, at = '2023-06-01'): Sent => ({
  ...opus(),
  ...version(at, { [header]: value }),
});

export const anthropicExamples: Record<string, Example> = {
  ...sharedExamples,
  betas: [
    named('interleaved-thinking-2025-05-14, no-such-2026-01-01', opus()),
    /Unexpected value\(s\) `no-such-2026-01-01` for the `anthropic-beta` header/,
    named('interleaved-thinking-2025-05-14,claude-code-20250219', opus()),
  ],
  'beta-fields': [
    opus({ thread: { type: 'create' } }),
    /thread: Extra inputs are not permitted/,
    named('message-threads-2026-08-12', opus({ thread: { type: 'create' } })),
  ],
  version: [{ ...opus(), ...version('2024-01-01') }, /not a valid version/, opus()],
  'key-header': [
    keyed('x-api-key', 'sk-right', '2026-10-21'),
    /authentication_error/,
    keyed('authorization', 'Bearer sk-right', '2026-10-21'),
    401,
  ],
  key: [keyed('x-api-key', 'wrong'), /invalid x-api-key/, keyed('x-api-key', 'sk-right'), 401],
};

const profiled = ({ body: value, ...sent }: Sent): Sent => ({
  ...sent,
  body: { ...(value as Json), model: `us.anthropic.${String((value as Json)['model'])}-v1:0` },
});
const called = (model: string, signed: Sent['signed'] = {}): Sent => ({ ...opus({ model }), signed });
const profile = 'us.anthropic.claude-opus-5-5-v1:0';

export const bedrockExamples: Record<string, Example> = {
  ...Object.fromEntries(
    Object.entries(sharedExamples).map(([id, [breaks, says, keeps, status]]): [string, Example] => [
      id,
      [profiled(breaks), says, profiled(keeps), status],
    ]),
  ),
  betas: [
    named('claude-code-20250219', called(profile)),
    /invalid beta flag/,
    named('interleaved-thinking-2025-05-14', called(profile)),
  ],
  signed: [called(profile, false), /Missing Authentication Token/, called(profile), 403],
  'access-key': [
    called(profile, { accessKey: 'AKIAOTHER' }),
    /security token included in the request is invalid/,
    called(profile),
    403,
  ],
  scope: [called(profile, { service: 's3' }), /correct service: 'bedrock'/, called(profile), 403],
  fresh: [called(profile, { at: Date.now() - 600_000 }), /Signature expired/, called(profile), 403],
  signature: [
    called(profile, { secret: 'other' }),
    /does not match the signature you provided/,
    called(profile),
    403,
  ],
  profile: [
    called('anthropic.claude-opus-5-5-v1:0'),
    /on-demand throughput isn’t supported/,
    called(profile),
  ],
  'profile-region': [
    called(profile, { region: 'eu-west-1' }),
    /The provided model identifier is invalid/,
    called('eu.anthropic.claude-opus-5-5-v1:0', { region: 'eu-west-1' }),
  ],
  version: [
    { ...called(profile), headers: { 'anthropic-version': undefined as never } },
    /anthropic_version: Field required/,
    {
      body: { ...body(), model: profile, anthropic_version: 'bedrock-2023-05-31' },
      headers: { 'anthropic-version': undefined as never },
    },
  ],
};
