import { describe, expect, it } from 'vitest';
import type { Dialect, RequestSettings, SentBody } from '../../../shared/upstreams/dialect.ts';
import { dialectNames, loadDialect } from '../../../shared/upstreams/dialects/dialects.ts';
import { convertCall } from '../../../shared/upstreams/called-channel.ts';
import { type CanonicalCall, splitKnown, type ChatRequest } from '../../../shared/wire/canonical-call.ts';
import type { JsonRecord } from '../../../shared/wire/json.ts';
import { settingsWith } from '../../support/dialect-parts.ts';

interface Asked extends Partial<RequestSettings> {
  /** The client's endpoint form. If absent, that of the dialect. */
  form?: string;
  dropsUnknown?: boolean;
}

const dialects = new Map<string, Dialect>(
  await Promise.all(dialectNames.map(async (name) => [name, await loadDialect(name)] as const)),
);

function sent(
  name: string,
  fields: JsonRecord,
  { form = name, dropsUnknown = true, ...more }: Asked = {},
): SentBody {
  const dialect = dialects.get(name);
  if (!dialect) throw new Error(name);
  const messages = [{ role: 'user', content: 'hi' }];
  const call: CanonicalCall = { form, ...splitKnown({ model: 'm', messages, ...fields } as ChatRequest) };
  return convertCall(dialect, call, { ...settingsWith(more), dropsUnknown });
}

/** A field by its path, with a unique value. */
const fieldOf = (path: string): JsonRecord => {
  const [name = '', ...inner] = path.split('.');
  return { [name]: inner.length > 0 ? fieldOf(inner.join('.')) : 'sentinel' };
};

/** The names of servers, gateways and vendors. */
const price = `service_tier speed performance_config performanceConfig inference_geo background prediction models fallbacks
  preset route provider providerOptions plugins web_search_options search_parameters search_options search_settings
  enable_search compound_custom data_sources mcp_servers modalities audio image_config extra_body reasoning.mode
  context_management compaction prompt_cache_options.ttl`;
const limits = `max_new_tokens max_tokens_to_sample n_predict num_predict best_of maxTokens maxOutputTokens max_output_tokens
  options.num_predict generationConfig.maxOutputTokens generation_config.max_output_tokens inferenceConfig.maxTokens
  num_return_sequences parameters.max_new_tokens MAX_TOKENS Max_Completion_Tokens`;
const steering = `api_base base_url api_key custom_llm_provider user_config deployment_id engine model_id fallback_models
  headers extra_headers num_retries mock_response lora_path cache_salt priority prompt_embeds image_embeds
  litellm_metadata litellm_credential_name aws_sts_endpoint azure_ad_token vertex_credentials mockResponse awsRegionName MOCK_RESPONSE litellm-params apiBase API_BASE api-base
  Model STREAM Input Store userId promptCacheKey safetyidentifier ſervice_tier kv_transfer_params custom_logit_processor chat_template`;
const stored = `container skills prompt conversation previous_response_id thread_id file_ids vector_store_ids
  cached_content session_id`;
const names = (list: string): string[] => list.split(/\s+/);
const all = [price, limits, steering, stored].flatMap(names);

describe.each(dialectNames)('a restricted field in %s', (name) => {
  it.each(all)('is dropped and named, even if unknown fields are sent: %s', (path) => {
    for (const form of ['chat', 'responses'])
      for (const dropsUnknown of [true, false]) {
        const { body, dropped } = sent(name, fieldOf(path), { form, dropsUnknown });
        expect(JSON.stringify(body)).not.toContain('sentinel');
        const [top = ''] = path.split('.');
        expect(dropped.some((each) => each === path || each === top)).toBe(true);
      }
  });

  it('is never an id of a stored file, container or store, at any depth of unknown fields', () => {
    for (const value of [
      { attachments: [{ file_id: 'sentinel' }] },
      { documents: { a: [{ source: { type: 'file', id: 'sentinel' } }] } },
      { resources: { inner: { vectorStoreIds: ['sentinel'] } } },
      { google: { cachedContent: 'sentinel' } },
    ]) {
      const { body, dropped } = sent(name, value, { dropsUnknown: false });
      expect([JSON.stringify(body).includes('sentinel'), dropped]).toEqual([false, Object.keys(value)]);
    }
  });

  it.each([
    [{ type: 'file', file: { file_id: 'file-1' } }, 'file.file_id'],
    [{ type: 'document', source: { type: 'file', file_id: 'file-1' } }, 'source'],
    [{ type: 'document', source: { type: 'file', id: 'file-1' } }, 'source'],
    [{ type: 'container_upload', file_id: 'file-1' }, 'type'],
    [{ type: 'input_image', fileId: 'file-1' }, 'fileId'],
    [
      { type: 'document', source: { type: 'content', content: [{ source: { file_id: 'f' } }] } },
      'source.content[0].source.file_id',
    ],
    [{ type: 'image_embeds', image_embeds: 'AAAA' }, 'type'],
  ])('is rejected as content: %j', (part, path) => {
    const messages = [{ role: 'user', content: [{ type: 'text', text: 'What is in it?' }, part] }];
    const param = `messages[0].content[1].${path}`;
    expect(() => sent(name, { messages }, { form: 'chat' })).toThrow(
      expect.objectContaining({ name: 'CannotCarry', param }),
    );
  });

  it.each([
    [{ file_id: 'file-1' }, 'file_id'],
    [{ attachments: [{ file_id: 'file-1', tools: [] }] }, 'attachments[0].file_id'],
  ])('is rejected beside the content as %j, but a citation in the history is not', (beside, path) => {
    const message = { role: 'user', content: 'What is in it?' };
    expect(() => sent(name, { messages: [{ ...message, ...beside }] })).toThrow(
      expect.objectContaining({ name: 'CannotCarry', param: `messages[0].${path}` }),
    );
    const annotations = [{ type: 'file_citation', file_id: 'file-1' }];
    const quoting = { role: 'assistant', content: 'It says so.', annotations };
    expect(sent(name, { messages: [message, quoting, message] }).dropped).toEqual([]);
  });

  it('is rejected when it is an earlier answer with sound by its id', () => {
    const messages = [{ role: 'assistant', content: null, audio: { id: 'audio_1' } }];
    expect(() => sent(name, { messages })).toThrow(expect.objectContaining({ param: 'messages[0].audio' }));
  });
});

describe('the request to a chat upstream', () => {
  it('contains the fields that the row allows by name, and does not report them', () => {
    for (const path of all.filter((each) => !/^(max_output_tokens)$/.test(each))) {
      const { body, dropped } = sent('chat', fieldOf(path), { allow: [path] });
      const [top = ''] = path.split('.');
      const isWhole = path.startsWith('generation') || path.startsWith('inference');
      if (!isWhole) expect([path, body[top] !== undefined, dropped]).toEqual([path, true, []]);
    }
    const messages = [{ role: 'user', content: [{ type: 'file', file: { file_id: 'file-1' } }] }];
    expect(sent('chat', { messages }, { allow: ['file_id'] }).body).toMatchObject({ messages });
  });

  it("keeps the names in a tool's own schema, but drops unknown fields beside them", () => {
    const parameters = {
      type: 'object',
      properties: { file_id: { type: 'string' }, api_base: { type: 'string' } },
    };
    const tool = { type: 'function', function: { name: 'read', parameters } };
    const steered = { ...tool, api_base: 'https://evil.example', litellm_params: {} };
    const { body, dropped } = sent('chat', { tools: [steered] });
    expect([body['tools'], dropped]).toEqual([[tool], ['tools[].api_base', 'tools[].litellm_params']]);
  });

  it('contains no unlisted field, except those that the row allows', () => {
    const { body, dropped } = sent('chat', { made_up: 1, other: {}, temperature: 1 }, { allow: ['other'] });
    expect([body['made_up'], body['other'], body['temperature'], dropped]).toEqual([
      undefined,
      {},
      1,
      ['made_up'],
    ]);
  });
});

describe('an allowed tool that runs at the upstream', () => {
  const choice = { tool_choice: { type: 'file_search' } };
  it.each([
    ['file_search', { vector_store_ids: ['vs_1'] }, 'vector_store_ids'],
    ['code_interpreter', { container: 'cntr_1' }, 'container_id'],
    ['code_interpreter', { container: { type: 'auto', file_ids: ['file-1'] } }, 'file_ids'],
    ['shell', { environment: { skills: [{ skill_id: 'skill_1' }] } }, 'skill_id'],
  ])('%s is sent without objects that are stored there: %j', (type, more, name) => {
    const tools = [{ type, ...more }];
    const { body, dropped } = sent('responses', { tools, ...choice }, { allow: [type] });
    expect([body['tools'], body['tool_choice'], dropped]).toEqual([undefined, undefined, ['tools']]);
    expect(sent('responses', { tools }, { allow: [type, name] }).body['tools']).toEqual(tools);
  });
});

describe('a limit under another name', () => {
  const budgets = {
    thinking: { type: 'enabled', budget_tokens: 64_000 },
    thinking_budget: '64000',
    reasoning: { max_tokens: -1, enabled: true },
    chat_template_kwargs: { thinking_budget: 64_000 },
    min_tokens: 64_000,
    extra_body: { google: { thinking_config: { thinking_budget: 64_000 } } },
  };
  const lowered = {
    thinking: { type: 'enabled', budget_tokens: 40 },
    thinking_budget: 40,
    reasoning: { max_tokens: 40, enabled: true },
    chat_template_kwargs: { thinking_budget: 40 },
    min_tokens: 40,
    extra_body: { google: { thinking_config: { thinking_budget: 40 } } },
  };
  it.each<[string, JsonRecord, Asked]>([
    ['of the balance', {}, { outputTokensLimit: 50, maxOutputTokens: 40 }],
    ['of the client', { max_tokens: 40 }, {}],
  ])('of thinking is lowered to the limit %s, and named', (_whose, more, settings) => {
    const { body, dropped } = sent('chat', { ...budgets, ...more }, settings);
    expect(body).toMatchObject(lowered);
    expect(dropped).toEqual([
      'thinking.budget_tokens',
      'thinking_budget',
      'reasoning.max_tokens',
      'chat_template_kwargs.thinking_budget',
      'min_tokens',
      'extra_body.google.thinking_config.thinking_budget',
    ]);
  });

  it.each([
    ['sampling_params', { max_new_tokens: 5_000, min_tokens: -1 }, { max_new_tokens: 40, min_tokens: -1 }],
    ['nvext', { max_thinking_tokens: 5_000 }, { max_thinking_tokens: 40 }],
    ['max_tokens_limit', 5_000, 40],
    ['min_tokens', 30, 30],
    ['min_tokens', '5000', 40],
  ])('%s is lowered if the row allows it: %j', (field, asked, expected) => {
    const { body } = sent('chat', { max_tokens: 40, [field]: asked }, { allow: [field] });
    expect(body[field]).toEqual(expected);
  });

  it('is lowered if the row allows it, but not if the row sets it', () => {
    const settings = { allow: ['maxTokens'], set: { thinking_budget: 99 } };
    const { body, dropped } = sent('chat', { max_tokens: 40, maxTokens: 5_000 }, settings);
    expect([body, dropped]).toEqual([
      expect.objectContaining({ max_tokens: 40, maxTokens: 40, thinking_budget: 99 }),
      ['maxTokens'],
    ]);
  });
});

it('a sent field that multiplies the usage is recorded', () => {
  const pro = { reasoning: { mode: 'pro' } };
  const isMultiplied = (fields: JsonRecord, settings: Asked): unknown =>
    sent('responses', fields, settings).isMultiplied;
  expect(isMultiplied(pro, {})).toBe(false);
  expect(isMultiplied(pro, { allow: ['reasoning.mode'] })).toBe(true);
  for (const name of ['num_outputs', 'completion_count'])
    expect(sent('chat', { [name]: 4 }, { allow: [name] }).isMultiplied).toBe(true);
  expect(isMultiplied({}, { set: { context_management: [{ type: 'compaction' }] } })).toBe(true);
});
