/**
 * Filters a call before it is sent: passes the fields that the dialect lists for tenants and those that the channel's
 * row allows by name. Every call of every dialect and endpoint goes through here, so that no tenant changes the price
 * of a call, steers a gateway behind us, or names data that the operator's organisation keeps at the vendor. Never
 * changes the call, and never drops content: what cannot be left out throws CannotCarry.
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
import { readWindow, tierFactor } from '../wire/service-tier.ts';
import { isRecord, type JsonRecord } from '../wire/json.ts';
import { CannotCarry, type DialectCode, type FieldRules, type RequestSettings } from './dialect.ts';
import { isCallerTool, limitNames } from './quirks.ts';

// Fields by name, as lines of paths.

/** Matches any value. */
const anything = '*';
const noFields: FieldRules = new Map();

/**
 * `a.b` is the field b inside a, also in each entry of a list; `a.*` is an a with any content. A field with nothing
 * inside holds a plain value or a list of them.
 */
export function parseFieldRules(
  lines: readonly string[],
  nameOf = (name: string): string => name,
): FieldRules {
  type Growing = Map<string, Growing>;
  const rules: Growing = new Map();
  for (const path of lines.join(' ').split(' ')) {
    let inner = rules;
    for (const name of path.split('.').map(nameOf)) {
      const next: Growing = inner.get(name) ?? new Map<string, Growing>();
      inner.set(name, next);
      inner = next;
    }
  }
  return rules;
}

/** Prefixes the paths of `parseFieldRules` with a field. */
export const prefixFields = (field: string, names: string): string => names.replaceAll(/\S+/g, `${field}.$&`);

/** Upper case first, because fewer letters are equal to others by case alone; servers in Go compare names like this. */
const foldCase = (name: string): string => name.toUpperCase().toLowerCase();
/** Checked first: a body may have tens of thousands of names. */
const isFolded = /^[a-z\d]*$/;
/** Ignores case, `_` and `-`, as some servers do. */
const foldName = (name: string): string =>
  isFolded.test(name) ? name : foldCase(name).replaceAll(/[_-]/g, '');

/** The words of a name, joined by `_`: `apiBase`, `api-base` and `API_BASE` are `api_base`. */
const wordsOf = (name: string): string =>
  foldCase(name.replaceAll('-', '_').replaceAll(/(?<=[a-z\d])(?=[A-Z])/g, '_'));

const isPlain = (value: unknown): boolean =>
  Array.isArray(value) ? value.every((each) => typeof each !== 'object') : typeof value !== 'object';

// Fields that stay limited even if a row allows them. Names are compared without case, `_` and `-`, as some servers
// read them.

/** Make an answer count more than its limit and input: several runs, summaries of the conversation. */
const multiplyingFields = [
  'reasoning.mode context_management compaction multi_agent prediction best_of num_return_sequences',
  'parameters.num_return_sequences sampling_params.n num_generations num_outputs num_completions n_cmpl',
  'completion_count candidate_count n_samples num_beams beam_width use_beam_search compound_custom',
];
/**
 * Lowered to the limit that the balance covers: other limits that an upstream may follow, minimum lengths, and budgets
 * of thinking, which some upstreams count separately.
 */
const limitFieldPaths = [
  'max_tokens max_completion_tokens max_output_tokens max_new_tokens max_gen_len max_length max_out_tokens',
  'max_output_len max_response_output_tokens max_tokens_to_generate max_tokens_to_sample max_token_count',
  'max_tokens_limit tokens_to_generate n_predict num_predict options.num_predict max_thinking_tokens',
  'max_reasoning_tokens min_tokens min_new_tokens min_length min_completion_tokens reasoning_budget',
  'thinking_budget thinking_token_budget thinking.budget_tokens thinking_config.thinking_budget reasoning.max_tokens',
  'extra_body.google.thinking_config.thinking_budget nvext.max_thinking_tokens inference_config.max_tokens',
  'text_generation_config.max_token_count parameters.max_length parameters.max_new_tokens parameters.max_tokens',
  prefixFields('chat_template_kwargs', 'thinking_budget thinking_token_budget reasoning_budget'),
  prefixFields('generation_config', 'max_output_tokens thinking_config.thinking_budget'),
  prefixFields('sampling_params', 'max_new_tokens max_tokens min_new_tokens min_tokens'),
];
/** Name data that the operator's organisation keeps at the vendor, anywhere in content, hosted tools and free values. */
const storedIds = [
  'file_id file_ids file_uri container_id vector_store_id vector_store_ids knowledge_base_id',
  'knowledge_base_ids skill_id skill_ids conversation_id thread_id assistant_id agent_id cached_content',
];
/** Types of content that only refer to such data, or tensors, which servers unpack as code. */
const restrictedContentTypes = [
  'container_upload',
  'image_file',
  'image_embeds',
  'audio_embeds',
  'prompt_embeds',
];

/**
 * A name with one of these words is never passed as unknown: counts and money, addresses and credentials, other
 * models, stored or shared data. `lora_path`, `webhookUrl` and `num_retries` match.
 */
const closedWords = new RegExp(
  `(?:^|_)(?:${[
    'access account adapter agent api audio auth aws azure background base batch beam best bill billing bootstrap',
    'budget cache cached caching callback compaction config connector container conversation cost count',
    'credential credit custom data deferred deployment diagnostic embed endpoint engine extra fallback file',
    'generate geo guardrail header host id image key langfuse length limit litellm lora management max mcp',
    'metadata min mock modalitie mode model n num nvext oci option organization param parameter path plugin policy',
    'prediction preset priority processor program prompt provider proxy query rank region retrie rid route router',
    'salt search secret session skill slot speed ssl store tag target template thread tier timeout token url user',
    'vertex watsonx webhook weight workspace',
  ]
    .join(' ')
    .replaceAll(' ', '|')})s?(?:_|$)`,
);

/** Metadata by which gateways tell the caller, route the call and name it in logs [LiteLLM, November 2026]. */
const gatewayMetadata =
  /^(?:user_api_key|litellm|model|api|deployment|requester|caching|existing|trace|generation|parent|hidden|guardrail|spend|tags|headers?)(?:_|$)/;

/** Inside the canonical call's own fields [openai-node 7.55; OpenRouter's breakpoints; vLLM and SGLang; November 2026]. */
const canonicalFields = parseFieldRules([
  prefixFields('stream_options', 'include_usage include_obfuscation continuous_usage_stats'),
  prefixFields('tools', 'type async custom.name custom.description custom.format.* defer_loading'),
  prefixFields('tools', 'cache_control.type cache_control.ttl function.name function.description'),
  prefixFields('tools', 'function.parameters.* function.strict function.defer_loading'),
]);

const multiplyingRules = parseFieldRules(multiplyingFields, foldName);
const limitRules = parseFieldRules(limitFieldPaths, foldName);
const idNames = new Set(parseFieldRules(storedIds, foldName).keys());
const restrictedTypes = new Set(restrictedContentTypes.map(foldName));
const dialectLimits: ReadonlySet<string> = new Set(limitNames);

/** Returns a copy in which `change` replaced or removed the fields of `rules`, or `source` if nothing changes. */
function changeFields(
  source: JsonRecord,
  rules: FieldRules,
  change: (path: string, value: unknown) => unknown,
  path = '',
): JsonRecord {
  let copy: JsonRecord | undefined;
  for (const [field, value] of Object.entries(source)) {
    const inner = rules.get(foldName(field));
    if (!inner || value === undefined || value === null) continue;
    const at = path + field;
    let next: unknown = value;
    if (inner.size === 0) next = change(at, value) ?? undefined;
    else if (isRecord(value)) next = changeFields(value, inner, change, `${at}.`);
    if (next === value) continue;
    copy ??= { ...source };
    if (next === undefined) delete copy[field];
    else copy[field] = next;
  }
  return copy ?? source;
}

type Permissions = Pick<RequestSettings, 'allow' | 'serviceTiers'> &
  Pick<DialectCode, 'tenantFields'> & { dropsUnknown: boolean };

/** Clients ask for a service tier in these. Anthropic's `speed` means the tier of its name. */
export const tierFields: readonly string[] = ['service_tier', 'speed'];

/**
 * Returns the call as it may be sent, and the paths of what was left out. Throws CannotCarry for content that a tenant
 * must not name.
 * @param isOwn the client wrote in the form of the dialect
 */
export function filterCall(
  call: CanonicalCall,
  { allow, dropsUnknown, serviceTiers, tenantFields: listed = noFields }: Permissions,
  isOwn: boolean,
): { call: CanonicalCall; dropped: string[] } {
  const { items, native, served } = call;
  const { service_tier: tier, metadata, stream_options: options, ...others } = call.request;
  const asking = served?.['speed'] === tier ? 'speed' : 'service_tier';
  const isPriced = tierFactor(serviceTiers, tier ?? '') !== undefined;
  const gate = new Gate({ allow, passes: !dropsUnknown }, isPriced ? { [asking]: tier } : {});
  const path = gate.findStoredInMessages(call.request);
  if (path !== undefined) throw new CannotCarry(path, explainStoredContent(path));
  // A window is sent as a field of its own, when the call is submitted.
  const isTierKept =
    (tier ?? undefined) === undefined ||
    (readWindow(tier) === undefined && gate.permit(asking, tier) !== undefined);
  const tools = filterTools(others.tools ?? [], gate, canonicalFields);
  const { tool_choice: choice } = others;
  const isChoiceLost = isRecord(choice) && tools.droppedTypes.has(String(choice['type']));
  const carried = items && filterItems(items, tools.kept, gate);
  return {
    call: {
      ...call,
      request: {
        ...others,
        ...(isTierKept && tier !== undefined && { service_tier: tier }),
        ...gate.filterFields({ stream_options: options }, canonicalFields),
        ...(metadata && { metadata: gate.filterMetadata(metadata) }),
        ...(others.tools && { tools: [...tools.kept.values()] }),
        ...(isChoiceLost && { tool_choice: 'auto' }),
      },
      unknown: gate.filterFields(call.unknown, listed),
      ...(served && isOwn && { served: gate.filterFields(served, listed) }),
      ...(carried && { items: carried }),
      ...(native && { native: filterNativeCall(native, gate, listed) }),
    },
    dropped: gate.dropped,
  };
}

function filterNativeCall(native: NativeCall, gate: Gate, listed: FieldRules): NativeCall {
  const { tools, service_tier: tier, metadata, ...contents } = native.body;
  const path = gate.findStored(contents)?.slice(1);
  if (path !== undefined) throw new CannotCarry(path, explainStoredContent(path));
  const isTierKept = (tier ?? undefined) !== undefined && gate.permit('service_tier', tier) !== undefined;
  const body = {
    ...contents,
    ...(isRecord(metadata) && { metadata: gate.filterMetadata(metadata) }),
    ...(isTierKept && { service_tier: tier }),
    ...(Array.isArray(tools) && { tools: [...filterTools(tools, gate, listed).kept.values()] }),
  };
  return { ...native, body };
}

export const findStoredPath = (request: ChatRequest, allow: readonly string[]): string | undefined =>
  new Gate({ allow }).findStoredInMessages(request);

export const explainStoredContent = (path: string): string =>
  `'${path}' names something that is stored at the provider. Send its content instead: the relay keeps no files.`;

const quoteFields = new Set(['annotations', 'citations']);

/** Fields that are allowed only with some values: defaults, and edits of the context that only clear. */
const listedValues = new Map<string, (value: unknown) => boolean>([
  ['prompt_cache_options.ttl', (value) => value === '30m'],
  ['store', (value) => value === false],
  ['context_management', onlyClears],
]);
const isListed = (at: string, value: unknown): boolean => listedValues.get(at)?.(value) ?? true;

/** Fields that the relay writes itself or binds to the account. Some servers also accept other spellings of them. */
const ownNames = [...chatFieldNames, 'input', 'instructions', 'include', 'text', 'user_id', 'max_tool_calls'];

/** A member of an object: its name, the fields listed for the object, and its path. */
interface Member {
  field: string;
  listed: FieldRules;
  at: string;
}

/** Applies the permissions of one row to one call and collects what was left out. */
class Gate {
  readonly dropped: string[] = [];
  readonly #allowed: ReadonlySet<string>;
  readonly #passesUnknown: boolean;
  /** The requested service tier by its field, if it has a price. */
  readonly #pricedTier: JsonRecord;

  constructor(
    { allow, passes = false }: { allow: readonly string[]; passes?: boolean },
    pricedTier: JsonRecord = {},
  ) {
    this.#allowed = new Set(allow.map(foldName));
    this.#passesUnknown = passes;
    this.#pricedTier = pricedTier;
  }

  allows(name: string): boolean {
    return this.#allowed.has(foldName(name));
  }

  /** For fields that are not listed for tenants. */
  permit(path: string, value: unknown): unknown {
    const isPriced = Object.hasOwn(this.#pricedTier, path) && this.#pricedTier[path] === value;
    if (isPriced || this.allows(path)) return value;
    this.dropped.push(path);
    return undefined;
  }

  /** `listed` has exact names: a server may take another spelling for another field. */
  filterFields(source: JsonRecord, listed: FieldRules, path = ''): JsonRecord {
    const sent = Object.entries(source).flatMap(([field, value]) => {
      const next = this.#filterField(value, { field, listed, at: path + field });
      return next === undefined ? [] : [[field, next] as const];
    });
    return Object.fromEntries(sent);
  }

  #filterField(value: unknown, { field, listed, at }: Member): unknown {
    const inner = listed.get(field);
    if (value === null || value === undefined) return inner && value;
    if (this.allows(at)) return value;
    if (!inner) return this.#filterUnlisted(value, { field, listed, at });
    if (inner.size > 0 && !inner.has(anything) && typeof value === 'object' && isListed(at, value))
      return this.#filterInside(value, inner, at);
    // Schemas and examples of a caller's tool may contain any names, and so may its `safeguards`.
    const isSent = inner.has(anything)
      ? /^(?:tools\[\]|safeguards$)/.test(at) || this.findStored(value) === undefined
      : inner.size === 0 && isPlain(value) && isListed(at, value);
    return isSent ? value : this.permit(at, value);
  }

  #filterInside(value: object, listed: FieldRules, at: string): unknown {
    if (Array.isArray(value))
      return value.filter(isRecord).map((each) => this.filterFields(each, listed, `${at}[].`));
    const sent = this.filterFields(value as JsonRecord, listed, `${at}.`);
    // An empty object means nothing.
    return Object.keys(sent).length > 0 ? sent : undefined;
  }

  #filterUnlisted(value: unknown, { field, listed, at }: Member): unknown {
    const above = `${foldName(at)}.`;
    if (isRecord(value) && [...this.#allowed].some((path) => path.startsWith(above)))
      return this.#filterInside(value, noFields, at);
    const isOpen =
      this.#passesUnknown &&
      !closedWords.test(wordsOf(field)) &&
      ![...ownNames, ...listed.keys()].some((each) => foldName(each) === foldName(field)) &&
      this.findStored(value) === undefined;
    return isOpen ? value : this.permit(at, value);
  }

  /** A map of the caller's own texts, without keys that gateways read. */
  filterMetadata(metadata: JsonRecord): JsonRecord {
    if (this.allows('metadata')) return metadata;
    const sent = Object.entries(metadata).filter(([name, value]) => {
      const words = wordsOf(name);
      const isOther = words === 'user_id' && name !== words;
      const isOwn = typeof value !== 'object' && !isOther && !gatewayMetadata.test(words);
      return isOwn || this.permit(`metadata.${name}`, value) !== undefined;
    });
    return Object.fromEntries(sent);
  }

  findStoredInMessages({ messages }: ChatRequest): string | undefined {
    for (const [i, message] of messages.entries()) {
      const { content, tool_calls: _calls, ...beside } = message;
      const inContent = Array.isArray(content) ? this.findStored(content) : undefined;
      if (inContent !== undefined) return `messages[${i}].content${inContent}`;
      const found = this.findStored(beside);
      if (found !== undefined) return `messages[${i}]${found}`;
      // An earlier answer with sound, by the vendor's id.
      if (isRecord(message['audio']) && !this.allows('audio')) return `messages[${i}].audio`;
    }
    return undefined;
  }

  /** The path of the first reference to stored data. The depth of a body is limited, so this recursion is too. */
  findStored(value: unknown): string | undefined {
    if (Array.isArray(value)) {
      for (const [i, one] of value.entries()) {
        const found = typeof one === 'object' ? this.findStored(one) : undefined;
        if (found !== undefined) return `[${i}]${found}`;
      }
    } else if (isRecord(value)) {
      const { type } = value;
      if (typeof type === 'string' && restrictedTypes.has(foldName(type)) && !this.allows(type))
        return '.type';
      for (const [field, inner] of Object.entries(value)) {
        // Skips most members of a large body.
        if (typeof inner !== 'string' && typeof inner !== 'object') continue;
        const name = foldName(field);
        if (idNames.has(name) && isId(inner) && !this.allows(field)) return `.${field}`;
        // The id may have any name.
        const isFile = name === 'source' && isRecord(inner) && inner['type'] === 'file';
        if (isFile && !this.allows('file_id')) return `.${field}`;
        // Arguments of a caller's tool may contain any names.
        const isCallersContent = quoteFields.has(field) || (type === 'tool_use' && field === 'input');
        if (typeof inner !== 'object' || isCallersContent) continue;
        const found = this.findStored(inner);
        if (found !== undefined) return `.${field}${found}`;
      }
    }
    return undefined;
  }
}

/** Excludes a property of that name in a schema. */
const isId = (value: unknown): boolean =>
  typeof value === 'string' || (Array.isArray(value) && value.some((each) => typeof each === 'string'));

/**
 * Maps the original tools to those that are sent, with the types that were left out. Hosted tools must not refer to
 * stored data; callers' tools keep the listed fields.
 */
function filterTools(
  asked: readonly ChatTool[],
  gate: Gate,
  listed: FieldRules,
): { kept: Map<ChatTool, ChatTool>; droppedTypes: Set<string> } {
  const kept = new Map<ChatTool, ChatTool>();
  const left = new Set<string>();
  const fields = listed.get('tools') ?? noFields;
  for (const tool of asked) {
    const namesContainer = typeof tool['container'] === 'string' && !gate.allows('container_id');
    if (isCallerTool(tool.type)) kept.set(tool, gate.filterFields(tool, fields, 'tools[].') as ChatTool);
    else if (namesContainer || gate.findStored(tool) !== undefined) left.add(tool.type);
    else kept.set(tool, tool);
  }
  if (left.size > 0) gate.dropped.push('tools');
  return { kept, droppedTypes: left };
}

/** Calls of the caller's own tools may contain any names. */
const callerItemTypes = new Set(['tool_search_call']);

/** Leaves out items that refer to stored data, and replaces declared tools by their filtered copies. */
function filterItems(items: CarriedItems, tools: ReadonlyMap<ChatTool, ChatTool>, gate: Gate): CarriedItems {
  const isPermitted = (item: JsonRecord): boolean => {
    const type = String(item['type']);
    if (callerItemTypes.has(type) || gate.findStored(item) === undefined) return true;
    gate.dropped.push(type);
    return false;
  };
  const after = [...items.after].map(([message, some]) => [message, some.filter(isPermitted)] as const);
  const instead = [...items.instead].filter(([, item]) => isPermitted(item));
  const declared = [...tools].flatMap(([original, tool]) => {
    const item = items.tools.get(original);
    return item ? [[tool, item] as const] : [];
  });
  return { ...items, after: new Map(after), instead: new Map(instead), tools: new Map(declared) };
}

/**
 * Lowers limits under other names to the limit that is sent, except those that the row sets. `isMultiplied`: the
 * upstream may correctly count more than limit and input allow.
 */
export function limitBody(
  body: JsonRecord,
  { set, limit = Infinity }: { set: object; limit: number | undefined },
): { body: JsonRecord; lowered: string[]; isMultiplied: boolean } {
  const lowered: string[] = [];
  const lower = (path: string, value: unknown): unknown => {
    const isWithin = Number(value) >= lowestAllowed(path) && Number(value) <= limit;
    const [field = path] = path.split('.');
    if (
      limit === Infinity ||
      isWithin ||
      isRecord(value) ||
      dialectLimits.has(path) ||
      Object.hasOwn(set, field)
    )
      return value;
    lowered.push(path);
    return limit;
  };
  let isMultiplied = false;
  changeFields(body, multiplyingRules, (_path, value) => {
    isMultiplied ||= !onlyClears(value);
    return value;
  });
  return { body: changeFields(body, limitRules, lower), lowered, isMultiplied };
}

/** A negative budget is unlimited; a negative minimum is no minimum. */
const lowestAllowed = (path: string): number => (/(?:^|\.)min_/.test(wordsOf(path)) ? -Infinity : 0);
