/** Only fields that a dialect lists are sent upstream, from every endpoint. */
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { asRecord, type JsonRecord } from '../../../../shared/wire/json.ts';
import { CoreRig, demoKey } from '../../../support/core-rig.ts';

const documents: Record<string, object> = {
  chat: { choices: [{ index: 0, message: { content: 'whole' }, finish_reason: 'stop' }] },
  messages: {
    type: 'message',
    role: 'assistant',
    content: [{ type: 'text', text: 'whole' }],
    stop_reason: 'end_turn',
  },
  responses: {
    object: 'response',
    status: 'completed',
    output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'whole' }] }],
  },
  embeddings: { data: [{ index: 0, embedding: [1, 2] }], usage: { prompt_tokens: 1 } },
};
const hi = [{ role: 'user', content: 'hi' }];
const endpoints: Record<string, { path: string; least: JsonRecord }> = {
  chat: { path: '/v1/chat/completions', least: { messages: hi } },
  messages: { path: '/v1/messages', least: { messages: hi, max_tokens: 4_000 } },
  responses: { path: '/v1/responses', least: { input: 'hi' } },
  embeddings: { path: '/v1/embeddings', least: { input: 'hi' } },
};

interface Asked {
  endpoint: string;
  dialect?: string;
  params?: JsonRecord;
}

async function upOf(body: JsonRecord, { endpoint, dialect = endpoint, params = {} }: Asked) {
  const row = dialect === 'embeddings' ? {} : { dialect };
  const rig = new CoreRig({ channels: [{ ...row, params, mapper: { m: 'up' } }] });
  rig.upstream({
    steps: [JSON.stringify(documents[dialect])],
    headers: { 'content-type': 'application/json' },
  });
  const { path, least } = endpoints[endpoint]!;
  const headers = endpoint === 'messages' ? { headers: { 'x-api-key': demoKey } } : {};
  const answer = await rig.post({ model: 'm', ...least, ...body }, { path, ...headers });
  expect([answer.status, answer.status === 200 ? '' : answer.text]).toEqual([200, '']);
  return {
    up: asRecord(rig.sent.at(-1)?.json),
    text: String(rig.sent.at(-1)?.body),
    dropped: (answer.headers['x-relay-dropped'] ?? '').split(', ').filter((name) => name !== ''),
    line: rig.logged.at(-1),
  };
}

const conversations = ['chat', 'messages', 'responses'];
const pairs = [
  ...conversations.flatMap((endpoint) => conversations.map((dialect) => [endpoint, dialect] as const)),
  ['embeddings', 'embeddings'] as const,
];

describe.each(pairs)('a call from %s to an upstream that speaks %s', (endpoint, dialect) => {
  const asked = { endpoint, dialect };

  const closed = `billing_policy access_programs moderation diagnostics fallback_credit_token lora adapter target_model router
    provider_order retries proxy webhook_url sampling_params max_tokens_limit num_outputs completion_count thread
    user_profile_id workspace_id multi_agent store_at Max_Tokens MAX_OUTPUT_TOKENS Temperature input_ids id_slot`;
  it.each([
    ['texts', 'sentinel'],
    ['objects', { type: 'sentinel' }],
    ['numbers', 77_777],
  ])('does not send unlisted fields as %s, and names them', async (_what, value) => {
    const names = closed.split(/\s+/);
    // The header names at most this many.
    for (const some of [names.slice(0, 15), names.slice(15)]) {
      const { text, dropped } = await upOf(Object.fromEntries(some.map((name) => [name, value])), asked);
      expect(text).not.toMatch(new RegExp(`sentinel|77777|"(?:${some.join('|')})"`));
      expect(dropped).toEqual(expect.arrayContaining(some));
    }
  });

  it('never stores anything at the vendor', async () => {
    const { up } = await upOf({ store: true }, asked);
    expect(up['store'] ?? false).toBe(false);
  });

  it("does not send a gateway's own members of metadata", async () => {
    const names = ['user_api_key', 'user_api_key_team_id', 'litellm_trace', 'UserApiKey', 'User_Id', 'tags'];
    const own = Object.fromEntries(names.map((name) => [name, 'sentinel']));
    const metadata = { ...own, order: 'o-1', spend_logs_metadata: { a: 'sentinel' }, nested: ['sentinel'] };
    const { text, dropped } = await upOf({ metadata }, asked);
    expect(text).not.toContain('sentinel');
    if (text.includes('o-1')) expect(dropped).toContain('metadata.user_api_key');
  });

  it('sends no unlisted field of any name in any place', async () => {
    const member = fc.stringMatching(/^[a-zA-Z][a-zA-Z_-]{3,12}$/).map((name) => `q7${name}`);
    const holders =
      `reasoning thinking stream_options text metadata output_config chat_template_kwargs options tool_choice
      prompt_cache_options cache_control extra_body structured_outputs usage context_management min_p truncation`.split(
        /\s+/,
      );
    const value = fc.oneof(fc.constant('q7v'), fc.constant({ q7w: 'q7v' }), fc.constant([{ q7w: 1 }]));
    const place = fc.constantFrom('', ...holders);
    await fc.assert(
      fc.asyncProperty(member, value, place, async (name, some, holder) => {
        const own = { [name]: some };
        const form = { tool_choice: { type: 'auto' }, thinking: { type: 'adaptive' } }[holder];
        // Members of metadata belong to the caller.
        fc.pre(holder !== 'metadata' || typeof some === 'object');
        const tool = { type: 'function', name: 'f', function: { name: 'f', q7z: 1 }, ...own };
        const tools = endpoint === 'messages' ? { ...tool, type: 'custom', input_schema: {} } : tool;
        const body = { ...(holder === '' ? own : { [holder]: { ...form, ...own } }), tools: [tools] };
        expect((await upOf(body, asked)).text).not.toContain('q7');
      }),
      { numRuns: 25, seed: 38 },
    );
  });
});

// Every field of the vendors' own clients is either sent or reserved for the operator; the lists below decide which.

/** The fields of an interface in a package's types. */
function fieldsOf(file: string, name: string): string[] {
  const types = readFileSync(
    new URL(`../../../../node_modules/${file}.d.ts`, import.meta.url),
    'utf8',
  ).replaceAll(/\/\*.*?\*\//gs, '');
  const [, body = ''] = types.match(new RegExp(`export interface ${name}\\b[^{]*\\{\n(.*?)\n\\}`, 's')) ?? [];
  return [...body.matchAll(/^ {4}(\w+)\??:/gm)].map(([, field]) => field!);
}

const look = { type: 'function', name: 'look', parameters: { type: 'object' } };
const nested = { type: 'function', function: { name: 'look', parameters: { type: 'object' }, strict: true } };
const clearing = {
  edits: [{ type: 'clear_thinking_20251015', keep: 'all' }],
};
const sent: Record<string, JsonRecord> = {
  chat: {
    frequency_penalty: 0.5,
    logit_bias: { 50256: -100 },
    logprobs: true,
    max_completion_tokens: 50,
    max_tokens: 60,
    metadata: { a: 'b' },
    n: 2,
    parallel_tool_calls: false,
    presence_penalty: 0.5,
    prompt_cache_options: { mode: 'explicit', ttl: '30m' },
    prompt_cache_retention: '24h',
    reasoning_effort: 'low',
    response_format: { type: 'json_object' },
    seed: 1,
    stop: ['END'],
    store: false,
    temperature: 0.5,
    tool_choice: 'required',
    tools: [nested],
    top_logprobs: 2,
    top_p: 0.5,
    verbosity: 'low',
  },
  responses: {
    image: { context_compression: 'disabled' },
    include: ['message.input_image.image_url'],
    max_output_tokens: 50,
    max_tool_calls: 3,
    metadata: { a: 'b' },
    parallel_tool_calls: false,
    prompt_cache_options: { mode: 'explicit', ttl: '30m' },
    prompt_cache_retention: '24h',
    reasoning: { effort: 'low', summary: 'auto', context: 'all_turns' },
    temperature: 0.5,
    text: { verbosity: 'low', format: { type: 'json_object' } },
    tool_choice: 'required',
    tools: [look],
    top_logprobs: 2,
    top_p: 0.5,
    truncation: 'auto',
  },
  messages: {
    cache_control: { type: 'ephemeral', ttl: '5m' },
    context_management: clearing,
    max_tokens: 3_000,
    output_config: {
      effort: 'low',
      format: { type: 'json_schema', schema: { type: 'object' } },
      task_budget: { type: 'tokens', total: 9_000 },
    },
    output_format: { type: 'json_schema', schema: { type: 'object' } },
    stop_sequences: ['END'],
    system: [{ type: 'text', text: 'Be brief.' }],
    thinking: { type: 'adaptive', display: 'summarized' },
    tool_choice: { type: 'auto', disable_parallel_tool_use: true },
    tools: [
      {
        name: 'look',
        description: 'Looks.',
        input_schema: { type: 'object' },
        input_examples: [{ a: 1 }],
        strict: true,
        defer_loading: true,
        eager_input_streaming: true,
        allowed_callers: ['direct'],
        cache_control: { type: 'ephemeral' },
      },
    ],
  },
};

/** Fields that the relay writes itself, binds to the account, or sends in another place. */
const relays =
  `model messages input instructions stream stream_options user safety_identifier prompt_cache_key functions
  function_call store previous_response_id conversation prompt background metadata`.split(/\s+/);
/** Fields that cost money, need the operator's organisation, or are not part of the body. */
const operators =
  `audio modalities moderation prediction service_tier web_search_options access_programs context_management
  multi_agent container diagnostics inference_geo speed billing_policy compaction fallback_credit_token fallbacks
  mcp_servers thread betas user_profile_id workspace_id`.split(/\s+/);

describe.each([
  ['chat', 'openai/resources/chat/completions/completions', 'ChatCompletionCreateParamsBase'],
  ['responses', 'openai/resources/responses/responses', 'ResponseCreateParamsBase'],
  ['responses', 'openai/resources/beta/responses/responses', 'ResponseCreateParamsBase'],
  ['messages', '@anthropic-ai/sdk/resources/messages/messages', 'MessageCreateParamsBase'],
  ['messages', '@anthropic-ai/sdk/resources/beta/messages/messages', 'MessageCreateParamsBase'],
])("the vendor's client for %s (%s)", (endpoint, file, name) => {
  const fields = fieldsOf(file, name);

  it('has each field sent unchanged or named as the operator’s', async () => {
    expect(fields.length).toBeGreaterThan(15);
    const values = sent[endpoint]!;
    const own = Object.fromEntries(
      fields.flatMap((field) => (field in values ? [[field, values[field]]] : [])),
    );
    const known = new Set([...Object.keys(own), ...relays, ...operators]);
    expect(fields.filter((field) => !known.has(field))).toEqual([]);
    const { up, dropped } = await upOf(own, { endpoint });
    expect(dropped).toEqual([]);
    const elsewhere = new Set(['max_completion_tokens', 'logprobs']);
    for (const [field, value] of Object.entries(own))
      if (!elsewhere.has(field)) expect([field, up[field]]).toEqual([field, merged(field, value)]);
  });

  it.each(fields.filter((field) => operators.includes(field) && !(field in sent[endpoint]!)))(
    'may send %s only if the row allows it',
    async (field) => {
      const value = field === 'speed' ? 'fast' : field === 'mcp_servers' ? [{ url: 'x' }] : 'sentinel';
      const refused = await upOf({ [field]: value }, { endpoint });
      expect([refused.up[field], refused.dropped]).toEqual([undefined, [field]]);
      const allowed = await upOf({ [field]: value }, { endpoint, params: { allow: [field] } });
      expect([allowed.up[field], allowed.dropped]).toEqual([value, []]);
    },
  );
});

/** The value with the relay's additions. */
function merged(field: string, value: unknown): unknown {
  if (field === 'include') return expect.arrayContaining(value as unknown[]);
  if (field === 'tools') return [expect.objectContaining({})];
  return value;
}

describe('a call to a server of open models', () => {
  it('sends sampling and template fields', async () => {
    const body = {
      min_p: 0.1,
      stop_token_ids: [1, 2],
      min_tokens: 3,
      chat_template_kwargs: { enable_thinking: false },
      guided_json: { type: 'object', properties: { api_base: { type: 'string' } } },
      structured_outputs: { regex: '[a-z]+' },
      xtc_probability: 0.2,
      dry_sequence_breakers: ['\n'],
      options: { mirostat: 2 },
      repeat_penalty: 1.1,
      thinking: { type: 'disabled' },
      reasoning: { enabled: false, exclude: true },
      extra_body: { google: { thinking_config: { include_thoughts: true } } },
    };
    const { up, dropped } = await upOf(body, { endpoint: 'chat' });
    expect([up, dropped]).toEqual([expect.objectContaining(body), []]);
  });

  it('does not send fields that run code, count as input or add output', async () => {
    const body = {
      chat_template: '{{ x }}',
      chat_template_kwargs: { chat_template: '{{ x }}', enable_thinking: true },
      extra_body: { google: { cached_content: 'c' } },
      prompt_logprobs: 5,
      return_hidden_states: true,
      mm_processor_kwargs: { max_pixels: 1e9 },
      options: { num_ctx: 1e6 },
    };
    const { up, dropped } = await upOf(body, { endpoint: 'chat' });
    expect(up['chat_template_kwargs']).toEqual({ enable_thinking: true });
    expect(dropped).toEqual([
      'chat_template',
      'chat_template_kwargs.chat_template',
      'extra_body.google.cached_content',
      'prompt_logprobs',
      'return_hidden_states',
      'mm_processor_kwargs',
      'options.num_ctx',
    ]);
    expect(Object.keys(up)).not.toContain('options');
  });
});

describe('a channel row', () => {
  it('allows single fields by their path', async () => {
    const body = {
      nvext: { guided_json: {}, max_thinking_tokens: 9 },
      target_model: 'x',
      made_up: { a: { b: 1, c: 2 } },
    };
    const params = { allow: ['made_up.a.b', 'target_model', 'nvext.max_thinking_tokens'] };
    const { up, dropped } = await upOf(body, { endpoint: 'chat', params });
    expect(up).toMatchObject({ nvext: { max_thinking_tokens: 9 }, target_model: 'x' });
    expect(up['made_up']).toEqual({ a: { b: 1 } });
    expect(dropped).toEqual(['nvext.guided_json', 'made_up.a.c']);
  });

  const closed =
    `api_base apiBase base_url webhook_url target_model fallbacks retries num_retries lora_path adapter proxy
    provider_order billing_policy fallback_credit_token litellm_params awsRegionName mock_response user_config headers
    cache_salt priority store session_id conversation prompt_embeds Model MIN_P max_new_tokens n_predict num_outputs
    sampling_params nvext generationConfig best_of`.split(/\s+/);
  it('that passes unknown fields still blocks those about money and isolation', async () => {
    const asked = { endpoint: 'chat', params: { unknown_fields: 'pass' } };
    const open = { made_up: { api: 1 }, x_sampler: 0.3, future_style: 'on' };
    const { up, dropped } = await upOf(
      { ...open, ...Object.fromEntries(closed.map((name) => [name, 7])) },
      asked,
    );
    expect(up).toMatchObject(open);
    expect(Object.keys(up).filter((name) => closed.includes(name))).toEqual([]);
    expect(new Set(dropped)).toEqual(new Set(closed.slice(0, 20)));
    const deep = { made_up: { inner: [{ file_id: 'file-1' }] }, options: { num_predict: 9, low_vram: 1 } };
    const second = await upOf({ ...deep, reasoning: { mode: 'pro' } }, asked);
    expect(second.dropped.toSorted()).toEqual(['made_up', 'options.num_predict', 'reasoning.mode']);
    expect(second.up['options']).toEqual({ low_vram: 1 });
  });
});

describe('the names of dropped fields', () => {
  it('are limited in the header and the log, and counted', async () => {
    const many = Object.fromEntries(Array.from({ length: 400 }, (_, i) => [`q${i}`, i]));
    const { dropped, line } = await upOf({ ['ü, x\n'.repeat(40)]: 1, ...many }, { endpoint: 'chat' });
    expect(dropped).toEqual(Object.keys(many).slice(0, 20));
    expect([line?.dropped, line?.dropped_count]).toEqual([dropped, 401]);
  });
});
