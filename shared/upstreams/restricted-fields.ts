/**
 * What of a call goes up only where the channel's row allows it by name: fields that change its price, steer a gateway
 * behind us, name what the operator's organisation keeps at the vendor, or limit the output by another name than the one
 * that the balance covers. All dialects and endpoints come through here. Must never change the call, nor drop content:
 * what cannot be left out is CannotCarry.
 */
import {
  type CanonicalCall,
  type CarriedItems,
  chatFieldNames,
  type ChatRequest,
  type ChatTool,
  type NativeCall,
  onlyClears,
} from '../wire/canonical-call.ts';
import { isRecord, type JsonRecord } from '../wire/json.ts';
import { tierFactor } from '../wire/service-tier.ts';
import { CannotCarry, type RequestSettings } from './dialect.ts';
import { isCallersTool, limitNames } from './quirks.ts';

// The names of those fields, by what they do. Fields are named by their path; names are compared without case, `_` and `-`,
// as some servers read them.

const words = (text: string): string[] => text.trim().split(/\s+/);

/** Make an answer count more than its limit and its input say: several runs, summaries of the conversation. */
const multiplying = words(`
  reasoning.mode context_management compaction multi_agent prediction best_of num_return_sequences
  parameters.num_return_sequences num_generations candidate_count n_samples num_beams beam_width
  use_beam_search compound_custom
`);

/** Move a call to another model or price tier than the billed one, or are charged beside tokens. */
const priced = words(`
  service_tier speed performance_config inference_geo background models fallbacks preset route provider
  provider_options plugins web_search web_search_options enable_web_search search_parameters
  search_options search_settings enable_search enable_code_interpreter vl_high_resolution_images caching
  connectors data_sources mcp_servers modalities audio image_config prompt_cache_options.ttl
`);

/** Limits that an upstream may follow instead of the one that the balance covers. Lowered to it where they are allowed. */
const otherLimits = words(`
  max_tokens max_completion_tokens max_output_tokens max_new_tokens max_gen_len max_length max_out_tokens
  max_output_len max_response_output_tokens max_tokens_to_generate max_tokens_to_sample max_token_count
  tokens_to_generate n_predict num_predict options.num_predict parameters.max_length
  parameters.max_new_tokens parameters.max_tokens generation_config inference_config
  text_generation_config
`);

/** Budgets of thinking, which some upstreams count beside the limit, and what allowed configurations hold. Lowered to it. */
const budgets = words(`
  thinking.budget_tokens thinking_budget thinking_token_budget thinking_config.thinking_budget
  max_thinking_tokens max_reasoning_tokens reasoning.max_tokens reasoning_budget
  chat_template_kwargs.thinking_budget chat_template_kwargs.thinking_token_budget
  chat_template_kwargs.reasoning_budget generation_config.max_output_tokens
  generation_config.thinking_config.thinking_budget inference_config.max_tokens
  text_generation_config.max_token_count
`);

/** Say to a gateway or server behind us where to go, with whose key, how often, in front of whom, with which weights. */
const steering = words(`
  api_base base_url api_key api_type apiVersion organization custom_llm_provider user_config deployment_id
  engine model_id model_info model_list fallback_models context_window_fallbacks content_policy_fallbacks
  default_fallbacks disable_fallbacks headers extra_headers default_headers provider_specific_header
  extra_query extra_body additional_model_request_fields allowed_openai_params drop_params timeout
  cooldown_time input_cost_per_token output_cost_per_token cache guardrails guardrail_config callbacks
  proxy_server_request ssl_verify tags virtual_key config anthropic_beta betas user_security_context
  deferred lora_path lora_request adapter_id adapter_source api_token cache_salt extra_key priority rid
  request_id routing_key data_parallel_rank kv_transfer_params vllm_xargs session_params custom_params
  custom_logit_processor logits_processors chat_template keep_alive options.num_ctx options.num_gpu
  options.main_gpu options.num_thread
`);
/** Whole families of them, as `aws_region_name` and `awsRegionName`. */
const steeringFamilies =
  /^(?:litellm|mock|aws|azure|vertex|sagemaker|watsonx|oci|langfuse|bootstrap)_|_(?:embeds|callback|timeout|retries)$/;
/** Name what the operator's organisation keeps at the vendor: no tenant's, or another's. */
const stored = words(`
  container skills prompt prompt_id prompt_variables conversation previous_response_id chat_id session_id
`);
/** The same at any depth of content, of hosted tools and of fields that the relay does not know. */
const storedIds = words(`
  file_id file_ids file_uri container_id vector_store_id vector_store_ids knowledge_base_id
  knowledge_base_ids skill_id skill_ids conversation_id thread_id assistant_id agent_id cached_content
`);
/** Parts of contents that are nothing else, or tensors, which servers unpack as code. */
const restrictedParts = ['container_upload', 'image_file', 'image_embeds', 'audio_embeds', 'prompt_embeds'];

/** Fields by name, each with the fields inside it. Of one without any the whole is meant. */
type Rules = Map<string, Rules>;

function rulesOf(...lists: readonly (readonly string[])[]): Rules {
  const rules: Rules = new Map();
  for (const path of lists.flat()) {
    let inner = rules;
    for (const name of path.split('.').map(folded)) {
      const next: Rules = inner.get(name) ?? new Map<string, Rules>();
      inner.set(name, next);
      inner = next;
    }
  }
  return rules;
}

/** Upper case first: it has fewer letters that are equal to others by case alone, as servers in Go compare names. */
const sameCase = (name: string): string => name.toUpperCase().toLowerCase();
/** Asked first: a body may have tens of thousands of names. */
const isFolded = /^[a-z\d]*$/;
const folded = (name: string): string =>
  isFolded.test(name) ? name : sameCase(name).replaceAll(/[_-]/g, '');

const isOfFamily = (field: string): boolean =>
  steeringFamilies.test(sameCase(field.replaceAll('-', '_').replaceAll(/(?<=[a-z])(?=[A-Z])/g, '_')));

const restricted = rulesOf(multiplying, priced, otherLimits, steering, stored, storedIds);
const steers = rulesOf(steering);
const multiplies = rulesOf(multiplying);
const lowerable = rulesOf(otherLimits, budgets);
const idNames = new Set(storedIds.map(folded));
const partTypes = new Set(restrictedParts.map(folded));
const ownLimits: ReadonlySet<string> = new Set(limitNames);

/** A copy in which the fields of `rules` are what `change` makes of them, or are gone. `source` where nothing changes. */
function changed(
  source: JsonRecord,
  rules: Rules,
  change: (path: string, value: unknown) => unknown,
  path = '',
): JsonRecord {
  let copy: JsonRecord | undefined;
  for (const [field, value] of Object.entries(source)) {
    const inner = rules.get(folded(field));
    if (!inner || value === undefined || value === null) continue;
    const at = path + field;
    let next: unknown = value;
    if (inner.size === 0) next = change(at, value) ?? undefined;
    else if (isRecord(value)) next = changed(value, inner, change, `${at}.`);
    if (next === value) continue;
    copy ??= { ...source };
    if (next === undefined) delete copy[field];
    else copy[field] = next;
  }
  return copy ?? source;
}

type Permissions = Pick<RequestSettings, 'allow' | 'serviceTiers'> & { dropsUnknown: boolean };

/** In which clients ask for a service tier. Anthropic's `speed` means the tier of its name. */
export const tierFields: readonly string[] = ['service_tier', 'speed'];

/** The call as it may go up, and the paths of what was left out. Throws CannotCarry for content that a tenant must not name. */
export function permittedCall(
  call: CanonicalCall,
  { allow, dropsUnknown, serviceTiers }: Permissions,
): { call: CanonicalCall; dropped: string[] } {
  const { request, items } = call;
  const { service_tier: tier, ...others } = request;
  const asking = call.served?.['speed'] === tier ? 'speed' : 'service_tier';
  const isPriced = tierFactor(serviceTiers, tier ?? '') !== undefined;
  const gate = new Gate(allow, isPriced ? { [asking]: tier } : {});
  const path = gate.storedInMessages(request);
  if (path !== undefined) throw new CannotCarry(path, storedMessage(path));
  const unknown = Object.entries(call.unknown).filter(([field, value]) => {
    const isRefused =
      dropsUnknown ||
      isOfFamily(field) ||
      isOtherSpelling(field) ||
      (typeof value === 'object' && gate.storedIn(value) !== undefined);
    return !isRefused || gate.permit(field, value) !== undefined;
  });
  const isTierKept = (tier ?? undefined) === undefined || gate.permit(asking, tier) !== undefined;
  const tools = permittedTools(request.tools ?? [], gate);
  const { tool_choice: choice } = request;
  const isChoiceLost = isRecord(choice) && tools.left.has(String(choice['type']));
  const carried = items && permittedItems(items, tools.kept, gate);
  const native = call.native && permittedNative(call.native, gate);
  return {
    call: {
      ...call,
      request: {
        ...(isTierKept ? request : others),
        ...(request.tools && { tools: [...tools.kept.values()] }),
        ...(isChoiceLost && { tool_choice: 'auto' }),
      },
      unknown: changed(Object.fromEntries(unknown), restricted, gate.permit),
      ...(call.served && { served: changed(call.served, restricted, gate.permit) }),
      ...(carried && { items: carried }),
      ...(native && { native }),
    },
    dropped: gate.dropped,
  };
}

function permittedNative(native: NativeCall, gate: Gate): NativeCall {
  const { tools, service_tier: tier, ...contents } = native.body;
  const path = gate.storedIn(contents)?.slice(1);
  if (path !== undefined) throw new CannotCarry(path, storedMessage(path));
  const isTierKept = (tier ?? undefined) !== undefined && gate.permit('service_tier', tier) !== undefined;
  const body = {
    ...contents,
    ...(isTierKept && { service_tier: tier }),
    ...(Array.isArray(tools) && { tools: [...permittedTools(tools, gate).kept.values()] }),
  };
  return { ...native, body };
}

/** What the relay writes itself, or binds to the account, in either form of OpenAI's. */
const ownNames = new Set([
  ...chatFieldNames,
  ...words('input instructions include text store max_tool_calls'),
]);
const bound = ['user_id', 'safety_identifier', 'prompt_cache_key'];
const boundNames = new Set(bound.map(folded));

/** A field of the relay's own written otherwise, which some servers take for it. */
const isOtherSpelling = (field: string): boolean =>
  (sameCase(field) !== field && ownNames.has(sameCase(field))) ||
  (boundNames.has(folded(field)) && !bound.includes(field));

/** The path of what the messages name that is stored at the vendor, and that a row does not allow. */
export const storedPath = (request: ChatRequest, allow: readonly string[]): string | undefined =>
  new Gate(allow).storedInMessages(request);

export const storedMessage = (path: string): string =>
  `'${path}' names something that is stored at the provider. Send its content instead: the relay keeps no files.`;

const quotes = new Set(['annotations', 'citations']);

/** What is in force without the field. */
const usualValues = new Map<string, unknown>([['prompt_cache_options.ttl', '30m']]);

/** What one row allows of one call, and what was left out of it. */
class Gate {
  readonly dropped: string[] = [];
  readonly #allowed: ReadonlySet<string>;
  /** The service tier that the call asks for, by the field that does. Empty: it has no price. */
  readonly #pricedTier: JsonRecord;

  constructor(allow: readonly string[], pricedTier: JsonRecord = {}) {
    this.#allowed = new Set(allow.map(folded));
    this.#pricedTier = pricedTier;
  }

  allows(name: string): boolean {
    return this.#allowed.has(folded(name));
  }

  readonly permit = (path: string, value: unknown): unknown => {
    if (this.allows(path) || onlyClears(value)) return value;
    if (Object.hasOwn(this.#pricedTier, path) && this.#pricedTier[path] === value) return value;
    if (usualValues.get(path) === value) return value;
    this.dropped.push(path);
    return undefined;
  };

  storedInMessages({ messages }: ChatRequest): string | undefined {
    for (const [i, message] of messages.entries()) {
      const { content, tool_calls: _calls, ...beside } = message;
      const inContent = Array.isArray(content) ? this.storedIn(content) : undefined;
      if (inContent !== undefined) return `messages[${i}].content${inContent}`;
      const found = this.storedIn(beside);
      if (found !== undefined) return `messages[${i}]${found}`;
      // An earlier answer with sound, by the vendor's id.
      if (isRecord(message['audio']) && !this.allows('audio')) return `messages[${i}].audio`;
    }
    return undefined;
  }

  /** The path of the first id of something stored, below `value`. The depth of a body is bounded, so that of this recursion is. */
  storedIn(value: unknown): string | undefined {
    if (Array.isArray(value)) {
      for (const [i, one] of value.entries()) {
        const found = typeof one === 'object' ? this.storedIn(one) : undefined;
        if (found !== undefined) return `[${i}]${found}`;
      }
    } else if (isRecord(value)) {
      const { type } = value;
      if (typeof type === 'string' && partTypes.has(folded(type)) && !this.allows(type)) return '.type';
      for (const [field, inner] of Object.entries(value)) {
        // Most of the members of a large body are neither.
        if (typeof inner !== 'string' && typeof inner !== 'object') continue;
        const name = folded(field);
        if (idNames.has(name) && isId(inner) && !this.allows(field)) return `.${field}`;
        // Its id may have any name.
        const isFile = name === 'source' && isRecord(inner) && inner['type'] === 'file';
        if (isFile && !this.allows('file_id')) return `.${field}`;
        // What a model asked a tool of its caller has names of the caller's.
        const isCallersOwn = quotes.has(field) || (type === 'tool_use' && field === 'input');
        if (typeof inner !== 'object' || isCallersOwn) continue;
        const found = this.storedIn(inner);
        if (found !== undefined) return `.${field}${found}`;
      }
    }
    return undefined;
  }
}

/** Not the property of that name in a schema. */
const isId = (value: unknown): boolean =>
  typeof value === 'string' || (Array.isArray(value) && value.some((each) => typeof each === 'string'));

/**
 * The tools that go up, by what they were, and the types of those left out: tools that run at the upstream go up without
 * what is stored there, callers' tools without what steers.
 */
function permittedTools(
  asked: readonly ChatTool[],
  gate: Gate,
): { kept: Map<ChatTool, ChatTool>; left: Set<string> } {
  const kept = new Map<ChatTool, ChatTool>();
  const left = new Set<string>();
  const drop = (path: string): undefined => void gate.dropped.push(`tools[].${path}`);
  for (const tool of asked) {
    const namesContainer = typeof tool['container'] === 'string' && !gate.allows('container_id');
    if (isCallersTool(tool.type))
      kept.set(tool, withoutFamilies(changed(tool, steers, drop), drop) as ChatTool);
    else if (namesContainer || gate.storedIn(tool) !== undefined) left.add(tool.type);
    else kept.set(tool, tool);
  }
  if (left.size > 0) gate.dropped.push('tools');
  return { kept, left };
}

function withoutFamilies(tool: JsonRecord, drop: (field: string) => void): JsonRecord {
  const fields = Object.keys(tool).filter(isOfFamily);
  if (fields.length === 0) return tool;
  for (const field of fields) drop(field);
  return Object.fromEntries(Object.entries(tool).filter(([field]) => !fields.includes(field)));
}

/** What a caller's own tool is asked and what a schema declares may have any name. */
const callersWords = new Set(['tool_search_call']);

/** The items without those that name what is stored at the vendor, with the tools that they declare as these may go up. */
function permittedItems(
  items: CarriedItems,
  tools: ReadonlyMap<ChatTool, ChatTool>,
  gate: Gate,
): CarriedItems {
  const isPermitted = (item: JsonRecord): boolean => {
    const type = String(item['type']);
    if (callersWords.has(type) || gate.storedIn(item) === undefined) return true;
    gate.dropped.push(type);
    return false;
  };
  const after = [...items.after].map(([message, some]) => [message, some.filter(isPermitted)] as const);
  const instead = [...items.instead].filter(([, item]) => isPermitted(item));
  const declared = [...tools].flatMap(([was, tool]) => {
    const item = items.tools.get(was);
    return item ? [[tool, item] as const] : [];
  });
  return { ...items, after: new Map(after), instead: new Map(instead), tools: new Map(declared) };
}

/**
 * Limits by other names are lowered to the limit that goes up, but for those that the row sets. `isMultiplied`: the
 * upstream may honestly count more than limit and input say.
 */
export function boundedBody(
  body: JsonRecord,
  { set, limit = Infinity }: { set: object; limit: number | undefined },
): { body: JsonRecord; lowered: string[]; isMultiplied: boolean } {
  const lowered: string[] = [];
  const lower = (path: string, value: unknown): unknown => {
    const isWithin = Number(value) >= 0 && Number(value) <= limit;
    const [field = path] = path.split('.');
    if (limit === Infinity || isWithin || isRecord(value) || ownLimits.has(path) || Object.hasOwn(set, field))
      return value;
    lowered.push(path);
    return limit;
  };
  let isMultiplied = false;
  changed(body, multiplies, (_path, value) => {
    isMultiplied ||= !onlyClears(value);
    return value;
  });
  return { body: changed(body, lowerable, lower), lowered, isMultiplied };
}
