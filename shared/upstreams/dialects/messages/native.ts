/**
 * Passes the body of a client that wrote Messages to an upstream that speaks it: unchanged, block by block, except for
 * the model, the limit, the fields and quirks that the channel's row sets, and what money and isolation need. Adds no
 * breakpoint, because this client sets its own. Leaves out thinking that the relay encrypted for its client, since no
 * vendor knows its signature. Corrects call ids, image types and citations that this vendor would refuse.
 */
import type { CanonicalCall, ChatMessage, ChatRequest } from '../../../wire/canonical-call.ts';
import { sealPrefix } from '../../../wire/ids.ts';
import {
  asRecord,
  isRecord,
  listIn,
  recordsIn,
  textIn,
  removeNulls,
  type JsonRecord,
} from '../../../wire/json.ts';
import { StateLost, type RequestSettings, type SentBody, applyRowFields } from '../../dialect.ts';
import { continuation, isCallerTool, type Quirks } from '../../quirks.ts';
import { mapIds } from '../../sent-call-ids.ts';
import { chooseEffort, imageTypeOf } from '../../request-fields.ts';
import {
  dropsBlocks,
  isThinkingBlock,
  lacksThinking,
  filterSampling,
  disableThinking,
  decideThinking,
} from './thinking.ts';

interface NativeFacts {
  settings: RequestSettings;
  outputTokensMax: number;
}

/** Undefined if the client wrote another form. */
export function buildNativeBody(
  { native, request, unknown, served }: CanonicalCall,
  { settings, outputTokensMax }: NativeFacts,
): Pick<SentBody, 'body' | 'dropped' | 'effort' | 'toolChoice' | 'holdsThread'> | undefined {
  if (!native) return undefined;
  const dropped: string[] = [];
  const noteDropped = (name: string): void => void dropped.push(name);
  const { system, messages, tools, metadata, service_tier: tier } = native.body;
  const isAllowed = ({ type }: JsonRecord) => isCallerTool(type) || settings.allow.includes(textIn(type));
  const sentTools = recordsIn(tools).filter(isAllowed);
  if (sentTools.length < listIn(tools).length) noteDropped('tools');
  const added = request.messages.filter((message) => !native.known.has(message));
  const known = correctTurns(dropLostThinking(recordsIn(messages), settings, noteDropped), settings);
  const turns = addSearchResults(known, added);
  const choice = asRecord(served?.['tool_choice']);
  const isChoiceLost =
    choice['type'] === 'tool' &&
    sentTools.length > 0 &&
    !sentTools.some(({ name }) => name === choice['name']);
  const body: JsonRecord = {
    model: settings.model,
    ...(sentTools.length > 0 && { tools: sentTools }),
    ...buildSystem(system, added),
    messages: turns,
    max_tokens: outputTokensMax,
    ...served,
    ...unknown,
    ...(tier !== undefined && { service_tier: tier }),
    ...((isRecord(metadata) || request.user) && {
      metadata: { ...asRecord(metadata), ...removeNulls({ user_id: request.user || undefined }) },
    }),
  };
  const thread = placeThread(body, settings, noteDropped);
  // The vendor stores the tools of a continued thread, so the request may have none.
  const isWithoutTools = sentTools.length === 0 && thread?.['type'] !== 'continue';
  if ('tool_choice' in body && (isChoiceLost || isWithoutTools)) {
    delete body['tool_choice'];
    noteDropped('tool_choice');
  }
  const { quirks } = settings;
  const ofEveryTurn = quirks.wantsBack === 'thinking';
  const isLoopWithoutThinking = lacksThinking(turns, { ofEveryTurn });
  const effort = applyThinkingRules(body, request, {
    settings,
    outputTokensMax,
    isLoopWithoutThinking,
    lose: noteDropped,
  });
  const toolChoice = applyOtherRules(body, request, { settings, lose: noteDropped });
  const thinkingType = asRecord(settings.set['thinking'] ?? body['thinking'])['type'] ?? 'disabled';
  const mustBegin = ofEveryTurn || (quirks.thinkingForm === 'budget' && dropped.includes('reasoning'));
  const isLost = thinkingType !== 'disabled' && mustBegin && isLoopWithoutThinking;
  const disabledThinking =
    ofEveryTurn && quirks.thinkingOff !== 'always' ? disableThinking(quirks) : undefined;
  if (isLost) noteDropped('thinking');
  dropRefusedFields(body, settings.refusedFeatures ?? []).forEach(noteDropped);
  if (settings.unpricedHour && shortenLifetimes(body)) noteDropped('cache_control.ttl');
  applyRowFields(body, settings);
  // Zero only fills the cache. The vendor refuses to stream that, and no other limit is reserved for it.
  if (outputTokensMax === 0) {
    body['max_tokens'] = 0;
    delete body['stream'];
  }
  const thinking = asRecord(body['thinking']);
  const holdsThinking = turns.some(({ content }) => recordsIn(content).some(isThinkingBlock));
  if (settings.dropsForeign && quirks.bindsThinking && holdsThinking && isAdaptive(thinking))
    body['thinking'] = { type: 'adaptive', block_binding: dropsBlocks, ...thinking };
  // Both the client's and the row's thinking would be refused again.
  if (isLost && disabledThinking) body['thinking'] = disabledThinking;
  else if (isLost) delete body['thinking'];
  return { body, dropped, effort, toolChoice, holdsThread: 'thread' in body };
}

/**
 * Replaces the relay's message id in the thread by the vendor's, or removes the thread if the upstream stores none. Changes `body`
 * and returns the thread that is sent. Throws StateLost if this upstream does not have the answer that the call continues.
 */
function placeThread(
  body: JsonRecord,
  { holdsThreads, threadId }: RequestSettings,
  lose: (name: string) => void,
): JsonRecord | undefined {
  const { thread } = body;
  if (!isRecord(thread)) return undefined;
  if (!holdsThreads) {
    delete body['thread'];
    lose('thread');
    return undefined;
  }
  if (thread['type'] !== 'continue' && !('previous_message_id' in thread)) return thread;
  if (threadId === undefined)
    throw new StateLost('thread', 'thread: no thread was found for this message. Send all messages again.');
  const placed = { ...thread, previous_message_id: threadId };
  body['thread'] = placed;
  return placed;
}

// The row's own rules of the model also bind native bodies, as they do converted ones. Other known rules do not: the
// vendor's clients recover from refusals by the vendor's own words.

interface RuledFacts {
  settings: RequestSettings;
  lose: (name: string) => void;
}

const pickRowQuirks = ({ quirks, rowQuirks }: RequestSettings): Partial<Quirks> =>
  Object.fromEntries(Object.entries(quirks).filter(([quirk]) => rowQuirks?.has(quirk)));

/**
 * Applies the rules about thinking and effort. Changes `body`. Returns the effort that is sent instead of the
 * client's.
 */
function applyThinkingRules(
  body: JsonRecord,
  request: ChatRequest,
  { lose, ...facts }: RuledFacts & Parameters<typeof decideThinking>[1],
): string | undefined {
  const { thinkingForm, thinkingOff, efforts } = pickRowQuirks(facts.settings);
  const { type } = asRecord(body['thinking']);
  const { effort: own, ...config } = asRecord(body['output_config']);
  const isOff = type === 'disabled' || type === 'between_tools';
  const form = thinkingForm === 'budget' ? 'enabled' : thinkingForm;
  const isRefused = isOff
    ? thinkingForm === 'none' || (thinkingOff ?? type) !== type
    : (type === 'enabled' || type === 'adaptive') && (form ?? type) !== type;
  let effort = own;
  let changed: string | undefined;
  if (isRefused) {
    // Adaptive thinking without an effort means the effort high ["Effort"].
    const asked = isOff ? 'none' : (request.reasoning_effort ?? 'high');
    const fields = decideThinking({ ...request, reasoning_effort: asked }, facts);
    delete body['thinking'];
    if (fields.thinking) body['thinking'] = fields.thinking;
    if (!isOff && !fields.isOn) lose('thinking');
    if (isOff || own === undefined) changed = fields.changedEffort;
    if (isOff) effort = fields.effort ?? own;
    else if (form === 'adaptive') effort = own ?? fields.effort;
    // The budget already says it.
    else if (form === 'enabled' && !efforts) effort = undefined;
  }
  if (efforts && typeof effort === 'string') {
    const levels = efforts.filter((each) => each !== 'none');
    const known = chooseEffort(effort, levels);
    if (known === undefined) lose('output_config.effort');
    else if (known !== effort) changed = known;
    effort = known;
  }
  if (effort !== own) body['output_config'] = { ...config, ...(effort !== undefined && { effort }) };
  if (effort === undefined && Object.keys(config).length === 0) delete body['output_config'];
  return changed;
}

/** Changes `body`. Returns what is sent instead of the client's tool choice. */
function applyOtherRules(
  body: JsonRecord,
  request: ChatRequest,
  { settings, lose }: RuledFacts,
): 'auto' | undefined {
  const { sampling = 'any', supportsStop, supportsForcedCalls, lastTurnRole } = pickRowQuirks(settings);
  if (sampling !== 'any') {
    const isThinking = sampling === 'without_reasoning' && asRecord(body['thinking'])['type'] !== 'disabled';
    const { fields, dropped } = filterSampling(request, {
      isThinking,
      quirks: settings.quirks,
      apiVersion: '',
    });
    for (const field of ['temperature', 'top_p', 'top_k']) delete body[field];
    Object.assign(body, fields);
    dropped.forEach(lose);
  }
  if (supportsStop === false && 'stop_sequences' in body) {
    delete body['stop_sequences'];
    lose('stop_sequences');
  }
  const turns = recordsIn(body['messages']);
  if (lastTurnRole === 'user' && turns.at(-1)?.['role'] === 'assistant')
    body['messages'] = [...turns, { role: 'user', content: continuation }];
  const { name, ...choice } = asRecord(body['tool_choice']);
  const isForced = choice['type'] === 'any' || choice['type'] === 'tool';
  if (supportsForcedCalls !== false || !isForced) return undefined;
  body['tool_choice'] = { ...choice, type: 'auto' };
  if (choice['type'] === 'tool')
    body['tools'] = recordsIn(body['tools']).filter((tool) => tool['name'] === name);
  return 'auto';
}

/** Models that bind thinking think unless told not to. */
const isAdaptive = ({ type = 'adaptive' }: JsonRecord): boolean => type === 'adaptive';

const isRelayThinking = ({ signature, data }: JsonRecord): boolean =>
  textIn(signature).startsWith(sealPrefix) || textIn(data).startsWith(sealPrefix);

/** Leaves out thinking that this upstream cannot read, and turns that had nothing else. */
function dropLostThinking(
  messages: readonly JsonRecord[],
  { omissions }: RequestSettings,
  lose: (name: string) => void,
): JsonRecord[] {
  const isLost = (block: unknown): boolean =>
    isRecord(block) && isThinkingBlock(block) && (omissions.has('state') || isRelayThinking(block));
  return messages.flatMap((message) => {
    const { role, content } = message;
    if (role !== 'assistant' || !Array.isArray(content) || !content.some(isLost)) return [message];
    lose('reasoning');
    const left = content.filter((block) => !isLost(block));
    return left.length > 0 ? [{ ...message, content: left }] : [];
  });
}

// Corrects call ids, image types and citations that the vendor would refuse.

function correctTurns(turns: readonly JsonRecord[], { callIds }: RequestSettings): JsonRecord[] {
  const blocks = turns.flatMap(({ content }) => recordsIn(content));
  const ids = blocks.flatMap((block) => callIdOf(block) ?? []);
  const mapped = mapIds(ids, 'word64');
  /** Restores the vendor's own id if this channel issued it. Other ids are mapped to a form that the vendor accepts. */
  const sendId = (id: string): string => {
    const own = callIds.restoreVendorId(id);
    return own === id ? (mapped.get(id) ?? id) : own;
  };
  return turns.map((turn) => {
    const { content } = turn;
    if (!Array.isArray(content)) return turn;
    const corrected = content.flatMap((block) => (isRecord(block) ? correctBlock(block, sendId) : [block]));
    return { ...turn, content: corrected };
  });
}

const idFields = new Map<unknown, string>([
  ['tool_use', 'id'],
  ['tool_result', 'tool_use_id'],
]);

function callIdOf(block: JsonRecord): string | undefined {
  const id = block[idFields.get(block['type']) ?? ''];
  return typeof id === 'string' ? id : undefined;
}

function correctBlock(block: JsonRecord, sendId: (id: string) => string): JsonRecord[] {
  const { type, source, content, citations } = block;
  const id = callIdOf(block);
  if (type === 'image') return [correctPicture(block, asRecord(source))];
  if (type === 'text' && Array.isArray(citations)) {
    const left = citations.filter((one) => !isRelayCitation(one));
    if (left.length === citations.length) return [block];
    const { citations: _all, ...text } = block;
    // The block held nothing but citations that the relay made.
    if (left.length === 0 && block['text'] === '') return [];
    return [left.length > 0 ? { ...block, citations: left } : text];
  }
  if (id === undefined) return [block];
  const inner =
    type === 'tool_result' &&
    Array.isArray(content) &&
    content.some((one) => asRecord(one)['type'] === 'image')
      ? { content: content.map((one) => correctPicture(asRecord(one), asRecord(asRecord(one)['source']))) }
      : {};
  return [{ ...block, ...inner, [idFields.get(type) ?? 'id']: sendId(id) }];
}

function correctPicture(block: JsonRecord, source: JsonRecord): JsonRecord {
  const { type, data, media_type: named } = source;
  if (type !== 'base64' || typeof data !== 'string' || typeof named !== 'string') return block;
  return { ...block, source: { ...source, media_type: imageTypeOf(data, named) } };
}

/** The relay's citations have no real index, and Claude's vendor checks it. */
const isRelayCitation = (citation: unknown): boolean => asRecord(citation)['encrypted_index'] === sealPrefix;

/** Search results that the relay adds: before the system text, or beside the last words of the user. */
function buildSystem(system: unknown, added: readonly ChatMessage[]): { system?: unknown } {
  const first = added.filter(({ role }) => role === 'system').map(createTextBlock);
  if (first.length === 0) return system === undefined ? {} : { system };
  const own = typeof system === 'string' ? [{ type: 'text', text: system }] : listIn(system);
  return { system: [...first, ...own.filter((block) => asRecord(block)['text'] !== '')] };
}

function addSearchResults(turns: JsonRecord[], added: readonly ChatMessage[]): JsonRecord[] {
  const searchResults = added.filter(({ role }) => role === 'user').map(createTextBlock);
  const last = turns.findLastIndex(({ role }) => role === 'user');
  const turn = turns[last];
  if (searchResults.length === 0 || !turn) return turns;
  const content = convertToBlocks(turn['content']);
  const results = content.filter((block) => asRecord(block)['type'] === 'tool_result');
  const others = content.filter((block) => asRecord(block)['type'] !== 'tool_result');
  return turns.with(last, { ...turn, content: [...results, ...searchResults, ...others] });
}

const convertToBlocks = (content: unknown): unknown[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : listIn(content);

const createTextBlock = ({ content }: ChatMessage): JsonRecord => ({ type: 'text', text: textIn(content) });

/** Turns cache writes for an hour into writes for five minutes. */
export const shortenLifetimes = (body: JsonRecord): boolean =>
  changeBreakpoints(body, ({ ttl, ...short }) => ((ttl ?? '5m') === '5m' ? undefined : short));

/** Copies what it changes, so the client's body stays as it is. */
function changeBreakpoints(
  body: JsonRecord,
  change: (control: JsonRecord) => JsonRecord | undefined,
): boolean {
  let any = false;
  const changeInside = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(changeInside);
    if (!isRecord(value)) return value;
    const control = isRecord(value['cache_control']) ? change(value['cache_control']) : undefined;
    any ||= control !== undefined;
    const inner = ['content', 'source']
      .filter((field) => typeof value[field] === 'object')
      .map((field) => [field, changeInside(value[field])] as const);
    return { ...value, ...Object.fromEntries(inner), ...(control && { cache_control: control }) };
  };
  for (const field of ['tools', 'system', 'messages'])
    if (field in body) body[field] = changeInside(body[field]);
  const { cache_control: own } = asRecord(changeInside({ cache_control: body['cache_control'] }));
  if (own !== undefined) body['cache_control'] = own;
  return any;
}

/** A model that does not think refuses to clear thinking. */
export function dropThinkingEdits(body: JsonRecord): void {
  const edits = recordsIn(asRecord(body['context_management'])['edits']);
  const left = edits.filter(({ type }) => !textIn(type).startsWith('clear_thinking_'));
  if (left.length === edits.length) return;
  if (left.length > 0) body['context_management'] = { edits: left };
  else delete body['context_management'];
}

// Features of the API are sent as the client named them, except those of a dropped field.

/**
 * The field of each feature and its location. An `optional` one only makes an answer cheaper or faster, so an upstream
 * that does not know the field, or refuses its feature, is asked again without it.
 */
const features: readonly {
  beta: RegExp;
  field: string;
  of: 'body' | 'tools' | 'cache_control';
  optional?: true;
}[] = [
  { beta: /^(?:context-management|compact)-/, field: 'context_management', of: 'body', optional: true },
  { beta: /^prompt-caching-scope-/, field: 'scope', of: 'cache_control', optional: true },
  { beta: /^(?:advanced-tool-use|tool-search-tool)-/, field: 'defer_loading', of: 'tools', optional: true },
  { beta: /^fine-grained-tool-streaming-/, field: 'eager_input_streaming', of: 'tools', optional: true },
  { beta: /^mcp-client-/, field: 'mcp_servers', of: 'body' },
  { beta: /^(?:code-execution|skills)-/, field: 'container', of: 'body' },
  { beta: /^(?:code-execution|skills)-/, field: 'skills', of: 'body' },
  { beta: /^fast-mode-/, field: 'speed', of: 'body' },
  { beta: /fallback/, field: 'fallbacks', of: 'body' },
  { beta: /^fallback-credit-/, field: 'fallback_credit_token', of: 'body' },
  { beta: /^compact-/, field: 'compaction', of: 'body' },
  { beta: /^cache-diagnosis-/, field: 'diagnostics', of: 'body' },
  { beta: /^message-threads-/, field: 'thread', of: 'body', optional: true },
  { beta: /^resumption-/, field: 'resumption', of: 'body' },
  { beta: /^dangerous-tool-use-/, field: 'safeguards', of: 'body' },
  { beta: /^user-profiles-billing-/, field: 'billing_policy', of: 'body' },
];

export const optionalFields = features.flatMap(({ field, optional }) => (optional ? [field] : []));

/**
 * @param refused fields and features by their names. Returns the paths of the fields that were left out.
 */
function dropRefusedFields(body: JsonRecord, refused: readonly string[]): string[] {
  return features.flatMap(({ beta, field, of, optional }) => {
    const isRefused = optional && refused.some((each) => each === field || beta.test(each));
    if (!isRefused || !dropField(body, field, of)) return [];
    return [of === 'body' ? field : `${of}.${field}`];
  });
}

function dropField(body: JsonRecord, field: string, of: (typeof features)[number]['of']): boolean {
  const omitField = ({ [field]: _left, ...others }: JsonRecord): JsonRecord => others;
  if (of === 'cache_control')
    return changeBreakpoints(body, (control) => (field in control ? omitField(control) : undefined));
  if (of === 'body') return field in body && delete body[field];
  const tools = recordsIn(body['tools']);
  if (!tools.some((tool) => field in tool)) return false;
  body['tools'] = tools.map(omitField);
  if (field === 'defer_loading') body['messages'] = replaceReferences(body['messages']);
  return true;
}

/** Results of searching for deferred tools become text. */
function replaceReferences(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(replaceReferences);
  const { type, content, tool_name: name } = asRecord(value);
  if (type === 'tool_reference') return { type: 'text', text: `Found the tool ${textIn(name)}.` };
  return Array.isArray(content) ? { ...asRecord(value), content: replaceReferences(content) } : value;
}

/**
 * @param dropped the paths of what does not go up
 */
export function filterBetas(
  betas: readonly string[],
  dropped: readonly string[],
  refused: readonly string[],
): string[] {
  const isDropped = (path: string): boolean =>
    dropped.some((each) => each === path || each.startsWith(`${path}.`));
  const lost = features.filter(({ field, of }) => isDropped(of === 'body' ? field : `${of}.${field}`));
  return betas.filter((beta) => !refused.includes(beta) && !lost.some((one) => one.beta.test(beta)));
}
