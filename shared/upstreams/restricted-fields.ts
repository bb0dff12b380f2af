/**
 * What of a call goes up: the fields that its dialect lists for tenants, and those that the channel's row allows by name. All
 * dialects and endpoints come through here, so that no tenant changes the price of a call, steers a gateway behind us or names what the
 * operator's organisation keeps at the vendor. Must never change the call, nor drop content: what cannot be left out is CannotCarry.
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
import { CannotCarry, type DialectCode, type FieldRules, type RequestSettings } from './dialect.ts';
import { isCallerTool, limitNames } from './quirks.ts';

// Fields by name, as lines of paths.

/** Inside a field: its value may be anything. */
const anything = '*';
const noFields: FieldRules = new Map();

/**
 * `a.b` is the field b inside a, in each entry where a is a list; `a.*` is an a with anything in it. A field with nothing
 * inside holds a plain value, or a list of these.
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

/** Paths of the fields inside one, for the lines of `parseFieldRules`. */
export const prefixFields = (field: string, names: string): string => names.replaceAll(/\S+/g, `${field}.$&`);

/** Upper case first: it has fewer letters that are equal to others by case alone, as servers in Go compare names. */
const foldCase = (name: string): string => name.toUpperCase().toLowerCase();
/** Asked first: a body may have tens of thousands of names. */
const isFolded = /^[a-z\d]*$/;
/** Without case, `_` and `-`, as some servers compare names. */
const foldName = (name: string): string =>
  isFolded.test(name) ? name : foldCase(name).replaceAll(/[_-]/g, '');

/** The words of a name, joined by `_`: `apiBase`, `api-base` and `API_BASE` are `api_base`. */
const wordsOf = (name: string): string =>
  foldCase(name.replaceAll('-', '_').replaceAll(/(?<=[a-z\d])(?=[A-Z])/g, '_'));

/** No object and no list of objects. */
const isPlain = (value: unknown): boolean =>
  Array.isArray(value) ? value.every((each) => typeof each !== 'object') : typeof value !== 'object';

// What a row lets through is still bounded. Names are compared without case, `_` and `-`, as some servers read them.

/** Make an answer count more than its limit and its input say: several runs, summaries of the conversation. */
const multiplyingFields = [
  'reasoning.mode context_management compaction multi_agent prediction best_of num_return_sequences',
  'parameters.num_return_sequences sampling_params.n num_generations num_outputs num_completions n_cmpl',
  'completion_count candidate_count n_samples num_beams beam_width use_beam_search compound_custom',
];
/**
 * Lowered to the limit that the balance covers: limits that an upstream may follow instead, floors of the output, and budgets of thinking, which some
 * upstreams count beside the limit.
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
/** Name what the operator's organisation keeps at the vendor, at any depth of content, of hosted tools and of free values. */
const storedIds = [
  'file_id file_ids file_uri container_id vector_store_id vector_store_ids knowledge_base_id',
  'knowledge_base_ids skill_id skill_ids conversation_id thread_id assistant_id agent_id cached_content',
];
/** Parts of contents that are nothing else, or tensors, which servers unpack as code. */
const restrictedPartTypes = [
  'container_upload',
  'image_file',
  'image_embeds',
  'audio_embeds',
  'prompt_embeds',
];

/**
 * Of the words of a name one of these keeps it closed where a row passes unknown fields on: counts and money, addresses and
 * credentials, other models, what is stored or shared. So are `lora_path`, `webhookUrl` and `num_retries`.
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

/** By which gateways know whose call it is, where it goes and under which name it is logged [LiteLLM, November 2026]. */
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
const restrictedTypes = new Set(restrictedPartTypes.map(foldName));
const dialectLimits: ReadonlySet<string> = new Set(limitNames);

/** A copy in which the fields of `rules` are what `change` makes of them, or are gone. `source` where nothing changes. */
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

/** In which clients ask for a service tier. Anthropic's `speed` means the tier of its name. */
export const tierFields: readonly string[] = ['service_tier', 'speed'];

/**
 * The call as it may go up, and the paths of what was left out. Throws CannotCarry for content that a tenant must not name.
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
  const isTierKept = (tier ?? undefined) === undefined || gate.permit(asking, tier) !== undefined;
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

/** The path of what the messages name that is stored at the vendor, and that a row does not allow. */
export const findStoredPath = (request: ChatRequest, allow: readonly string[]): string | undefined =>
  new Gate({ allow }).findStoredInMessages(request);

export const explainStoredContent = (path: string): string =>
  `'${path}' names something that is stored at the provider. Send its content instead: the relay keeps no files.`;

const quoteFields = new Set(['annotations', 'citations']);

/** Fields that are listed for some values alone: what is in force anyway, and edits of the context that only clear. */
const listedValues = new Map<string, (value: unknown) => boolean>([
  ['prompt_cache_options.ttl', (value) => value === '30m'],
  ['store', (value) => value === false],
  ['context_management', onlyClears],
]);
const isListed = (at: string, value: unknown): boolean => listedValues.get(at)?.(value) ?? true;

/** What the relay writes itself, or binds to the account: some servers take another spelling for it. */
const ownNames = [...chatFieldNames, 'input', 'instructions', 'include', 'text', 'user_id', 'max_tool_calls'];

/** Where a member stands: its name, what is listed beside it, and its path. */
interface Member {
  field: string;
  listed: FieldRules;
  at: string;
}

/** What one row allows of one call, and what was left out of it. */
class Gate {
  readonly dropped: string[] = [];
  readonly #allowed: ReadonlySet<string>;
  readonly #passesUnknown: boolean;
  /** The service tier that the call asks for, by the field that does. Empty: it has no price. */
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

  /** Fields that are not listed for tenants. */
  permit(path: string, value: unknown): unknown {
    const isPriced = Object.hasOwn(this.#pricedTier, path) && this.#pricedTier[path] === value;
    if (isPriced || this.allows(path)) return value;
    this.dropped.push(path);
    return undefined;
  }

  /** The members of `source` that may go up. `listed` has their exact names: a server may take another spelling for another field. */
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
    // What a schema or an example of a caller's tool names is the caller's.
    const isSent = inner.has(anything)
      ? at.startsWith('tools[]') || this.findStored(value) === undefined
      : inner.size === 0 && isPlain(value) && isListed(at, value);
    return isSent ? value : this.permit(at, value);
  }

  #filterInside(value: object, listed: FieldRules, at: string): unknown {
    if (Array.isArray(value))
      return value.filter(isRecord).map((each) => this.filterFields(each, listed, `${at}[].`));
    const sent = this.filterFields(value as JsonRecord, listed, `${at}.`);
    // An object of which nothing is left says nothing.
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

  /** A map of the caller's own, as its vendor documents it: of texts, without what gateways read there. */
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

  /** The path of the first id of something stored, below `value`. The depth of a body is bounded, so that of this recursion is. */
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
        // Most of the members of a large body are neither.
        if (typeof inner !== 'string' && typeof inner !== 'object') continue;
        const name = foldName(field);
        if (idNames.has(name) && isId(inner) && !this.allows(field)) return `.${field}`;
        // Its id may have any name.
        const isFile = name === 'source' && isRecord(inner) && inner['type'] === 'file';
        if (isFile && !this.allows('file_id')) return `.${field}`;
        // What a model asked a tool of its caller has names of the caller's.
        const isCallersContent = quoteFields.has(field) || (type === 'tool_use' && field === 'input');
        if (typeof inner !== 'object' || isCallersContent) continue;
        const found = this.findStored(inner);
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
 * what is stored there, callers' tools with the fields that are listed.
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

/** What a caller's own tool is asked and what a schema declares may have any name. */
const callerItemTypes = new Set(['tool_search_call']);

/** The items without those that name what is stored at the vendor, with the tools that they declare as these may go up. */
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
 * Limits by other names are lowered to the limit that goes up, but for those that the row sets. `isMultiplied`: the
 * upstream may honestly count more than limit and input say.
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

/** A budget below zero has no bound; a floor below zero is none. */
const lowestAllowed = (path: string): number => (/(?:^|\.)min_/.test(wordsOf(path)) ? -Infinity : 0);
