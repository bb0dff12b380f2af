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

/** The rules that Anthropic and Bedrock share. */
export const sharedExamples: Record<string, Example> = {
  body: {
    breaks: opus({ messages: [user([text({ citation: 1 })])] }),
    status: 400,
    says: /messages\.0\.content\.0\.citation: Extra inputs are not permitted/,
    keeps: opus({ messages: [user([text()])] }),
  },
  model: { breaks: opus({ model: 'claude-9' }), status: 404, says: /not_found_error/, keeps: opus() },
  'first-message': {
    breaks: opus({ messages: [assistant(text()), user('hello')] }),
    status: 400,
    says: /first message must use the/,
    keeps: opus(),
  },
  'system-turns': {
    breaks: haiku({ messages: [user('hello'), { role: 'system', content: 'be brief' }] }),
    status: 400,
    says: /messages\.1: role 'system' is not supported on this model/,
    keeps: opus({ messages: [user('hello'), { role: 'system', content: 'be brief' }] }),
  },
  'no-prefill': {
    breaks: opus({ messages: [user('hello'), assistant(text())] }),
    status: 400,
    says: /does not support assistant message prefill/,
    keeps: haiku({ messages: [user('hello'), assistant(text())] }),
  },
  'empty-content': {
    breaks: opus({ system: [text({ text: '' })] }),
    status: 400,
    says: /text content blocks must be non-empty/,
    keeps: opus({ system: [text()] }),
  },
  'assistant-documents': {
    breaks: {
      ...opus({ messages: [user('hello'), assistant(documentBlock), user('so?')] }),
      ...version('2026-10-21'),
    },
    status: 400,
    says: /document blocks are not permitted in assistant messages/,
    keeps: opus({ messages: [user('hello'), assistant(documentBlock), user('so?')] }),
  },
  'tool-names': {
    breaks: opus({ tools: [messagesTool, messagesTool] }),
    status: 400,
    says: /Tool names must be unique/,
    keeps: opus({ tools }),
  },
  'choice-with-tools': {
    breaks: opus({ tool_choice: { type: 'auto' } }),
    status: 400,
    says: /only be specified while providing tools/,
    keeps: opus({ tool_choice: { type: 'auto' }, tools }),
  },
  'tool-use-ids': {
    breaks: opus({ tools, messages: loop('search:0') }),
    status: 400,
    says: /messages\.1\.content\.0\.tool_use\.id: String should match pattern/,
    keeps: opus({ tools, messages: loop('search_0') }),
  },
  'unique-ids': {
    breaks: opus({ tools, messages: [...loop('a'), ...loop('a')] }),
    status: 400,
    says: /`tool_use` ids must be unique/,
    keeps: opus({ tools, messages: [...loop('a'), ...loop('b')] }),
  },
  'calls-answered': {
    breaks: opus({ tools, messages: [user('hello'), assistant(use('a')), user('so?')] }),
    status: 400,
    says: /messages\.1: `tool_use` ids were found without `tool_result` blocks immediately after: a\./,
    keeps: opus({ tools, messages: loop('a') }),
  },
  'results-asked': {
    breaks: opus({ tools, messages: [user([result('a')])] }),
    status: 400,
    says: /unexpected `tool_use_id` found in `tool_result` blocks: a/,
    keeps: opus({ tools, messages: loop('a') }),
  },
  'results-first': {
    breaks: opus({ tools, messages: [user('hello'), assistant(use('a')), user([text(), result('a')])] }),
    status: 400,
    says: /without `tool_result` blocks immediately after/,
    keeps: opus({ tools, messages: [user('hello'), assistant(use('a')), user([result('a'), text()])] }),
  },
  'output-max': {
    breaks: opus({ max_tokens: 128_001 }),
    status: 400,
    says: /max_tokens: 128001 > 128000/,
    keeps: opus({ max_tokens: 128_000 }),
  },
  'sampling-refused': {
    breaks: opus({ temperature: 1 }),
    status: 400,
    says: /`temperature` is deprecated for this model/,
    keeps: haiku({ temperature: 0.5 }),
  },
  'one-of-sampling': {
    breaks: haiku({ temperature: 0.5, top_p: 0.9 }),
    status: 400,
    says: /cannot both be specified/,
    keeps: haiku({ top_p: 0.9 }),
  },
  'thinking-sampling': {
    breaks: haiku({ thinking: budget, temperature: 0.5 }),
    status: 400,
    says: /`temperature` may only be set to 1 when thinking is enabled/,
    keeps: haiku({ thinking: budget, temperature: 1 }),
  },
  'thinking-type': {
    breaks: opus({ thinking: { type: 'disabled' } }),
    status: 400,
    says: /thinking\.type\.disabled.* is not supported for this model/,
    keeps: opus({ thinking: { type: 'adaptive' } }),
  },
  'thinking-budget': {
    breaks: haiku({ thinking: budget, max_tokens: 1024 }),
    status: 400,
    says: /`max_tokens` must be greater than `thinking\.budget_tokens`/,
    keeps: haiku({ thinking: budget }),
  },
  effort: {
    breaks: haiku({ output_config: { effort: 'low' } }),
    status: 400,
    says: /does not support the effort parameter/,
    keeps: opus({ output_config: { effort: 'max' } }),
  },
  'format-schema': {
    breaks: opus(format({})),
    status: 400,
    says: /'additionalProperties' must be explicitly set to false/,
    keeps: opus(format({ additionalProperties: false })),
  },
  'format-keywords': {
    breaks: formatOf(closed({ age: { type: 'integer', minimum: 0 } })),
    status: 400,
    says: /For 'integer' type, properties minimum are not supported/,
    keeps: formatOf(closed({ age: { type: 'integer' } })),
  },
  'format-recursion': {
    breaks: formatOf({ $ref: '#/$defs/a', $defs: { a: closed({ a: { $ref: '#/$defs/a' } }) } }),
    status: 400,
    says: /Recursive schemas/,
    keeps: formatOf({ $ref: '#/$defs/a', $defs: { a: closed({ a: { type: 'string' } }) } }),
  },
  'strict-tools': {
    breaks: strictTool(closed({ a: { oneOf: [{ type: 'string' }, { type: 'null' }] } })),
    status: 400,
    says: /tools\.custom\.input_schema: For/,
    keeps: strictTool(closed({ a: { anyOf: [{ type: 'string' }, { type: 'null' }] } })),
  },
  'image-type': {
    breaks: inline('image/jpg'),
    status: 400,
    says: /messages\.0\.content\.0\.image\.source\.base64\.media_type: Input should be 'image\/jpeg'/,
    keeps: inline('image/jpeg'),
  },
  'forced-choice': {
    breaks: opus({ tools, tool_choice: { type: 'any' } }),
    status: 400,
    says: /tool_choice: type .*tool.* and .*any.* are not supported for this model/,
    keeps: haiku({ tools, tool_choice: { type: 'any' } }),
  },
  'forced-choice-thinking': {
    breaks: haiku({ tools, tool_choice: { type: 'any' }, thinking: budget }),
    status: 400,
    says: /Thinking may not be enabled when tool_choice forces tool use/,
    keeps: haiku({ tools, tool_choice: { type: 'auto' }, thinking: budget }),
  },
  breakpoints: {
    breaks: opus({ messages: [user(marks(5))] }),
    status: 400,
    says: /A maximum of 4 blocks with cache_control may be provided\. Found 5/,
    keeps: opus({ messages: [user(marks(4))] }),
  },
  'breakpoint-order': {
    breaks: opus({ messages: [user([marked('5m'), marked('1h')])] }),
    status: 400,
    says: /must not come after a ttl='5m'/,
    keeps: opus({ messages: [user([marked('1h'), marked('5m')])] }),
  },
  'thinking-signature': {
    breaks: opus({ messages: [user('hello'), assistant(thought('sig'), text()), user('so?')] }),
    status: 400,
    says: /messages\.1\.content\.0: Invalid `signature` in `thinking` block/,
    keeps: opus({ messages: [user('hello'), assistant(text()), user('so?')] }),
  },
  'thinking-first': {
    breaks: haiku({ tools, thinking: budget, messages: loop('a') }),
    status: 400,
    says: /Expected `thinking` or `redacted_thinking`, but found `tool_use`/,
    keeps: haiku({ tools, messages: loop('a') }),
  },
};

/** Tested with thinking that the double made: `messages.test.ts`. */
export const shownElsewhere = ['thinking-unchanged', 'thinking-bound'];

const keyed = (header: string, value: string, at = '2023-06-01'): Sent => ({
  ...opus(),
  ...version(at, { [header]: value }),
});

export const anthropicExamples: Record<string, Example> = {
  ...sharedExamples,
  version: {
    breaks: { ...opus(), ...version('2024-01-01') },
    status: 400,
    says: /not a valid version/,
    keeps: opus(),
  },
  'key-header': {
    breaks: keyed('x-api-key', 'sk-right', '2026-10-21'),
    status: 401,
    says: /authentication_error/,
    keeps: keyed('authorization', 'Bearer sk-right', '2026-10-21'),
  },
  key: {
    breaks: keyed('x-api-key', 'wrong'),
    status: 401,
    says: /invalid x-api-key/,
    keeps: keyed('x-api-key', 'sk-right'),
  },
};

const profiled = ({ body: value, ...sent }: Sent): Sent => ({
  ...sent,
  body: { ...(value as Json), model: `us.anthropic.${String((value as Json)['model'])}-v1:0` },
});
const called = (model: string, signed: Sent['signed'] = {}): Sent => ({ ...opus({ model }), signed });
const profile = 'us.anthropic.claude-opus-5-5-v1:0';

export const bedrockExamples: Record<string, Example> = {
  ...Object.fromEntries(
    Object.entries(sharedExamples).map(([id, { breaks, keeps, ...expected }]) => [
      id,
      { ...expected, breaks: profiled(breaks), keeps: profiled(keeps) },
    ]),
  ),
  signed: {
    breaks: called(profile, false),
    status: 403,
    says: /Missing Authentication Token/,
    keeps: called(profile),
  },
  'access-key': {
    breaks: called(profile, { accessKey: 'AKIAOTHER' }),
    status: 403,
    says: /security token included in the request is invalid/,
    keeps: called(profile),
  },
  scope: {
    breaks: called(profile, { service: 's3' }),
    status: 403,
    says: /correct service: 'bedrock'/,
    keeps: called(profile),
  },
  fresh: {
    breaks: called(profile, { at: Date.now() - 600_000 }),
    status: 403,
    says: /Signature expired/,
    keeps: called(profile),
  },
  signature: {
    breaks: called(profile, { secret: 'other' }),
    status: 403,
    says: /does not match the signature you provided/,
    keeps: called(profile),
  },
  profile: {
    breaks: called('anthropic.claude-opus-5-5-v1:0'),
    status: 400,
    says: /on-demand throughput isn’t supported/,
    keeps: called(profile),
  },
  'profile-region': {
    breaks: called(profile, { region: 'eu-west-1' }),
    status: 400,
    says: /The provided model identifier is invalid/,
    keeps: called('eu.anthropic.claude-opus-5-5-v1:0', { region: 'eu-west-1' }),
  },
  version: {
    breaks: { ...called(profile), headers: { 'anthropic-version': undefined as never } },
    status: 400,
    says: /anthropic_version: Field required/,
    keeps: {
      body: { ...body(), model: profile, anthropic_version: 'bedrock-2023-05-31' },
      headers: { 'anthropic-version': undefined as never },
    },
  },
};
