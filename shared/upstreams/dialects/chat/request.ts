/** Builds the body of a Chat Completions request, for OpenAI and for compatible upstreams. */
import {
  type CanonicalCall,
  type ChatContentPart,
  type ChatMessage,
  isEmptyText,
} from '../../../wire/canonical-call.ts';
import {
  asRecord,
  isRecord,
  listIn,
  textIn,
  removeNulls,
  unwrapArguments,
  type JsonRecord,
  recordsIn,
} from '../../../wire/json.ts';
import type { StatePart } from '../../../wire/turn-state.ts';
import {
  CannotCarry,
  type RequestSettings,
  type SentBody,
  type DialectCode,
  applyRowFields,
} from '../../dialect.ts';
import {
  chooseEffort,
  correctImageUrl,
  findRefusedSampling,
  splitStopSequences,
  wrapInput,
} from '../../request-fields.ts';
import { type CallIds } from '../../call-ids.ts';
import { mapIds } from '../../sent-call-ids.ts';
import { continuation, type Quirks, echoedFields, limitFields } from '../../quirks.ts';
import { ChatReader } from './events.ts';
import { tenantFields } from './tenant-fields.ts';
import { convertTools, pickFields } from './tools.ts';

/** OpenAI's maximum, which servers of the same form know [platform.openai.com, "Create chat completion"]. */
const stopsMax = 4;
/** With these, vLLM and SGLang leave a stop sequence in the text, so the relay must not cut it off. */
const stopKeepers = ['include_stop_str_in_output', 'no_stop_trim'];

/** Fields that are set separately, or never sent. */
const separateFields = ['messages', 'official', 'stream', 'stream_options', 'model'];

/**
 * Never changes the call. Unknown fields are sent if the client wrote Chat Completions. Requests a stream with usage
 * unless the channel does not support it. Throws CannotCarry for fields that must not be dropped and have no form
 * here.
 */
export function buildChatBody(call: CanonicalCall, settings: RequestSettings): SentBody {
  const { form, request, unknown } = call;
  const { quirks } = settings;
  const tools = convertTools(call, settings);
  const asked: JsonRecord = removeNulls({
    ...request,
    ...(form === 'chat' && unknown),
    tools: tools.tools,
    tool_choice: tools.choice,
  });
  for (const field of separateFields) delete asked[field];
  const isDerived = form === 'messages' && !quirks.takesDerivedFields;
  const underived = isDerived ? leaveOutDerivedFields(asked, settings) : [];
  if (tools.tools === undefined) delete asked['parallel_tool_calls'];
  setLimits(asked, settings);
  const stops = splitStopSequences(call, settings, { sentMax: stopsMax });
  if (stops.sent.length === 0) delete asked['stop'];
  else if (Array.isArray(asked['stop'])) asked['stop'] = stops.sent;

  const messages = convertMessages(call, settings, tools.wraps);
  const { body: fields, dropped, effort } = fitFields(asked, settings);
  const body: JsonRecord = { model: settings.model, messages, ...fields };
  const left = form === 'chat' ? [] : Object.keys(unknown);
  const unsent = [...left, ...underived, ...tools.dropped, ...dropped, ...listLostState(call, settings)];
  applyRowFields(body, settings);
  delete body['stream_options'];
  if (settings.stream && settings.includeUsage && (quirks.acceptedFields?.has('stream_options') ?? true))
    body['stream_options'] = { ...removeNulls(request.stream_options ?? {}), include_usage: true };
  return {
    body,
    dropped: [...new Set(unsent)],
    effort,
    toolChoice: tools.changedChoice,
    outputTokensMax: limitOf(body, settings),
    stop: stopKeepers.some((field) => body[field] === true) ? undefined : stops.watched,
    wrappedTools: tools.wrapped,
  };
}

/**
 * Removes the fields that the relay derived from a Messages request: strict servers may refuse them. Keeps the effort if the
 * model's efforts are known. Changes `asked` and returns the names of the removed fields.
 */
function leaveOutDerivedFields(asked: JsonRecord, { quirks }: RequestSettings): string[] {
  const { user, reasoning_effort: effort } = asked;
  delete asked['user'];
  const isKnown = quirks.efforts !== undefined;
  if (!isKnown) delete asked['reasoning_effort'];
  return [
    ...(user === undefined ? [] : ['metadata.user_id']),
    ...(isKnown || effort === undefined ? [] : ['reasoning_effort']),
  ];
}

/** Reports the state that a repeat leaves out. */
function listLostState({ request }: CanonicalCall, { omissions, states }: RequestSettings): string[] {
  if (!omissions.has('state') && !omissions.has('echoes')) return [];
  const echoed = request.messages.some(
    (message) =>
      Array.isArray(message['reasoning_details']) ||
      [message, ...(message.tool_calls ?? [])].some((each) => isRecord(each['extra_content'])),
  );
  return states.size > 0 || echoed ? ['reasoning'] : [];
}

// Messages. Only appends: earlier turns stay the same when the transcript grows, because upstreams cache by prefix.

/** Throws CannotCarry. `wraps`: custom calls are sent as calls of functions. */
function convertMessages(call: CanonicalCall, settings: RequestSettings, wraps: boolean): JsonRecord[] {
  const { messages } = call.request;
  const { quirks } = settings;
  refuseFileUrls(messages);
  const sent: JsonRecord[] = [];
  // Tool messages can hold only text, so images of results follow the last result of their turn.
  let images: ChatContentPart[] = [];
  const flush = (): void => {
    if (images.length > 0) sent.push({ role: 'user', content: images });
    images = [];
  };
  for (const message of placeResults(messages)) {
    const isUser = message.role === 'user';
    if (message.role !== 'tool' && !isUser) flush();
    const converted = convertCommonFields(message);
    const content = converted['content'];
    if (message.role === 'tool' && Array.isArray(content)) {
      converted['content'] = readResultText(content, call.form);
      images.push(...content.filter(({ type }) => type !== 'text'));
    }
    if (isUser && images.length > 0)
      converted['content'] = [
        ...images.splice(0),
        ...(Array.isArray(content) ? content : [{ type: 'text', text: content }]),
      ];
    if (converted['role'] === 'system' && converted['content'] === '') continue;
    // Strict servers refuse an empty answer. One that a chat client wrote is kept.
    if (call.form !== 'chat' && isEmptyAnswer(message) && !settings.states.has(message)) continue;
    if (message.role === 'assistant') {
      if (message.tool_calls) {
        const calls = message.tool_calls.map((each) => convertToolCall(each, wraps, quirks));
        converted['tool_calls'] = calls;
        if (quirks.nullContent === 'empty' && calls.length > 0) converted['content'] ??= '';
      }
      const isForeign = settings.foreignTurns?.has(message) === true;
      const omissions = isForeign ? new Set([...settings.omissions, 'state' as const]) : settings.omissions;
      sent.push(attachState(converted, settings.states.get(message), { ...settings, omissions }));
    } else sent.push(converted);
  }
  flush();
  const last = sent.at(-1);
  if (quirks.lastTurnRole === 'user' && last?.['role'] === 'assistant' && idsOf(last).length === 0)
    sent.push({ role: 'user', content: continuation });
  const known = sent.map((message) => filterMessage(message, quirks));
  const named = mapCallIds(known, settings);
  return quirks.systemPosition === 'first' ? mergeSystemMessages(named) : named;
}

/** Moves tool results next to their calls, as vendors require. Messages that stood in between follow. */
function placeResults(messages: readonly ChatMessage[]): ChatMessage[] {
  const placed: ChatMessage[] = [];
  const waiting: ChatMessage[] = [];
  let open = new Set<unknown>();
  for (const message of messages) {
    const { role, tool_calls: calls, tool_call_id: answered } = message;
    if (role === 'assistant') {
      placed.push(...waiting.splice(0), message);
      open = new Set(calls?.map(({ id }) => id));
    } else if (role !== 'tool' && open.size > 0) waiting.push(message);
    else placed.push(message);
    if (role === 'tool' && open.delete(answered) && open.size === 0) placed.push(...waiting.splice(0));
  }
  return [...placed, ...waiting];
}

const isEmptyAnswer = ({ role, content, tool_calls: calls }: ChatMessage): boolean =>
  role === 'assistant' && (content?.length ?? 0) === 0 && (calls?.length ?? 0) === 0;

/** `developer` is OpenAI's newer name for `system`. A null content is kept: it accompanies tool calls. */
function convertCommonFields(message: ChatMessage): JsonRecord {
  const converted = removeNulls(message);
  if (message.role === 'developer') converted['role'] = 'system';
  if (message.content === null) converted['content'] = null;
  if (Array.isArray(message.content)) {
    const parts = message.content.filter((part) => !isEmptyText(part)).map(correctImage);
    converted['content'] = parts.length > 0 ? parts : message.tool_calls ? null : '';
  }
  delete converted['phase'];
  return converted;
}

function correctImage(part: ChatContentPart): ChatContentPart {
  const { url } = part.image_url ?? {};
  const correct = url === undefined ? undefined : correctImageUrl(url);
  return correct === url ? part : { ...part, image_url: { ...part.image_url, url: correct ?? '' } };
}

/**
 * The text of a tool's result: as content parts if the client wrote parts, or else as the string that all upstreams
 * accept.
 */
function readResultText(
  parts: readonly ChatContentPart[],
  form: string,
): string | readonly ChatContentPart[] {
  const texts = parts.filter(({ type }) => type === 'text');
  if (form === 'chat' && texts.length > 0) return texts;
  const text = texts.map(({ text }) => text ?? '').join('\n');
  // Strict servers refuse an empty result.
  return text === '' && parts.length > 0 ? 'The result is in the next message.' : text;
}

/** The index only matters in streams. Clients send it back, and upstreams that refuse other echoes refuse it too. */
function convertToolCall(source: object, wraps: boolean, { acceptedEchoes }: Quirks): JsonRecord {
  const call = removeNulls(source);
  if (acceptedEchoes) delete call['index'];
  const { function: called, custom, ...others } = call;
  const given = asRecord(called)['arguments'];
  if (isRecord(called) && (call['type'] ?? 'function') === 'function')
    return { ...call, function: { ...called, arguments: unwrapArguments(textIn(given)) } };
  if (!wraps || call['type'] !== 'custom') return call;
  const { name, input } = asRecord(custom);
  return { ...others, type: 'function', function: { name, arguments: wrapInput(textIn(input)) } };
}

// State of earlier answers that comes back with its turn. The reader of answers collects it.

/** Google's replacement for a signature that was lost or belongs to another vendor. Source: "Thought signatures". */
const skippedSignature = 'skip_thought_signature_validator';

/**
 * Returns the message with its state: as the client sent it back, or as kept by the relay, or the vendor's
 * replacement.
 */
export function attachState(
  message: JsonRecord,
  parts: readonly StatePart[] | undefined,
  { quirks, omissions }: RequestSettings,
): JsonRecord {
  // Reasoning between tags has no field. What a client sends back as one is the relay's own reading.
  const echoes = quirks.acceptedEchoes ?? (quirks.usesThinkTags ? [] : echoedFields);
  const isLost = omissions.has('state') || omissions.has('echoes');
  const accepted = isLost ? [] : echoes;
  const fields = dropEchoes(message, accepted);
  const calls = recordsIn(fields['tool_calls']).map((call) => dropEchoes(call, accepted));
  if (!isLost) for (const part of parts ?? []) if ('opaque' in part) putBack(part.opaque, fields, calls);

  const first = omissions.has('echoes') ? undefined : calls[0];
  if (first && quirks.wantsBack === 'reasoning_content') nameReasoning(fields);
  if (first && quirks.wantsBack === 'thought_signature')
    first['extra_content'] = ensureSignature(first['extra_content']);
  return calls.length > 0 ? { ...fields, tool_calls: calls } : fields;
}

/** Two names of one text, which is sent once: under the client's name, if it sent one. */
const reasoningTexts = ['reasoning_content', 'reasoning'];

/** Changes `fields` and `calls`. */
function putBack(opaque: JsonRecord, fields: JsonRecord, calls: readonly JsonRecord[]): void {
  const { call: index, ...kept } = opaque;
  const target = typeof index === 'number' ? calls[index] : fields;
  if (!target) return;
  const isThere = (field: string): boolean =>
    (reasoningTexts.includes(field) ? reasoningTexts : [field]).some((name) => name in target);
  for (const field of echoedFields) if (field in kept && !isThere(field)) target[field] = kept[field];
}

/** Servers of one model use two names for its reasoning. Lost reasoning is sent empty. Changes `fields`. */
function nameReasoning(fields: JsonRecord): void {
  if (fields['reasoning_content'] !== undefined || fields['reasoning_details'] !== undefined) return;
  fields['reasoning_content'] = textIn(fields['reasoning']);
  delete fields['reasoning'];
}

/** Only the first of parallel calls is signed. */
function ensureSignature(extra: unknown): JsonRecord {
  const namespaces = asRecord(extra);
  if (Object.values(namespaces).some((each) => textIn(asRecord(each)['thought_signature']) !== ''))
    return namespaces;
  const google = { ...asRecord(namespaces['google']), thought_signature: skippedSignature };
  return { ...namespaces, google };
}

const dropEchoes = (source: JsonRecord, accepted: readonly string[]): JsonRecord =>
  Object.fromEntries(
    Object.entries(source).filter(
      ([field]) => accepted.includes(field) || !echoedFields.some((echoed) => echoed === field),
    ),
  );

function refuseFileUrls(messages: readonly ChatMessage[]): void {
  for (const [i, { content }] of messages.entries()) {
    if (!Array.isArray(content)) continue;
    const j = content.findIndex((part) => typeof asRecord(part['file'])['file_url'] === 'string');
    if (j >= 0)
      throw new CannotCarry(
        `messages[${i}].content[${j}].file.file_url`,
        'The upstream takes files inline, not by URL.',
      );
  }
}

/** Gives the vendor its own ids back if this channel issued them, and maps ids that it does not accept. */
function mapCallIds(messages: JsonRecord[], { callIds, quirks }: RequestSettings): JsonRecord[] {
  const restored = restoreVendorIds(messages, callIds);
  const ids = mapIds(restored.flatMap(idsOf), quirks.callIdForm);
  return restored.map((message) => renameIds(message, (id) => ids.get(id) ?? id));
}

/** If a vendor repeats an id within one turn, it gets the client's ids there, which tell the results apart. */
function restoreVendorIds(messages: readonly JsonRecord[], callIds: CallIds): JsonRecord[] {
  let turn = new Map<string, string>();
  return messages.map((message) => {
    if (Array.isArray(message['tool_calls'])) {
      turn = new Map();
      const used = new Set<string>();
      for (const id of idsOf(message)) {
        const own = callIds.restoreVendorId(id);
        const given = turn.get(id) ?? (used.has(own) ? id : own);
        used.add(given);
        turn.set(id, given);
      }
    }
    return renameIds(message, (id) => turn.get(id) ?? callIds.restoreVendorId(id));
  });
}

function idsOf(message: JsonRecord): string[] {
  const ids = [...listIn(message['tool_calls']).map((call) => asRecord(call)['id']), message['tool_call_id']];
  return ids.filter((id) => typeof id === 'string');
}

function renameIds(message: JsonRecord, rename: (id: string) => string): JsonRecord {
  const { tool_calls: calls, tool_call_id: answered } = message;
  const renameCall = (call: unknown): unknown =>
    isRecord(call) && typeof call['id'] === 'string' ? { ...call, id: rename(call['id']) } : call;
  return {
    ...message,
    ...(Array.isArray(calls) && { tool_calls: calls.map(renameCall) }),
    ...(typeof answered === 'string' && { tool_call_id: rename(answered) }),
  };
}

/** Moves all system texts into one first message. */
function mergeSystemMessages(messages: readonly JsonRecord[]): JsonRecord[] {
  const contents = messages.filter(({ role }) => role === 'system').map(({ content }) => content);
  if (contents.length === 0) return [...messages];
  const plain = contents.every((content) => !Array.isArray(content));
  const content = plain
    ? contents.filter((text) => typeof text === 'string' && text !== '').join('\n\n')
    : contents.flatMap((each) => (Array.isArray(each) ? each : [{ type: 'text', text: each }]));
  return [{ role: 'system', content }, ...messages.filter(({ role }) => role !== 'system')];
}

// Fields. Drops what an upstream does not accept, but never what would change the meaning of the answer.

interface FittedFields {
  body: JsonRecord;
  dropped: string[];
  /** If it is not the requested one. */
  effort: string | undefined;
}

const isEmpty = (value: unknown): boolean => value === '' || (Array.isArray(value) && value.length === 0);

/** Fields that must not be dropped, unless they have their default value. */
const requiredFields = new Map<string, (value: unknown) => boolean>([
  ['response_format', (value) => asRecord(value)['type'] !== 'text'],
  ['tools', (value) => !isEmpty(value)],
  ['functions', (value) => !isEmpty(value)],
  ['tool_choice', (value) => value !== 'auto'],
  ['stop', (value) => !isEmpty(value)],
  ['n', (value) => value !== 1],
  ...limitFields.map((field): [string, () => boolean] => [field, () => true]),
]);

/** `asked`: all fields except the model and the conversation. Throws CannotCarry. */
function fitFields(asked: JsonRecord, { quirks, set }: RequestSettings): FittedFields {
  const body = { ...asked };
  const dropped: string[] = [];
  const drop = (field: string): void => {
    if (!Object.hasOwn(body, field)) return;
    delete body[field];
    dropped.push(field);
  };
  for (const [field, value] of Object.entries(body)) {
    if (!quirks.acceptedFields || quirks.acceptedFields.has(field)) continue;
    if (requiredFields.get(field)?.(value) === true)
      throw new CannotCarry(field, `'${field}' is not supported by the upstream.`);
    drop(field);
  }
  const requested = body['reasoning_effort'];
  const known = typeof requested === 'string' ? quirks.efforts : undefined;
  const effort = known && chooseEffort(String(requested), known);
  if (effort !== undefined) body['reasoning_effort'] = effort;
  else if (known) drop('reasoning_effort');
  const { reasoning_effort: sent } = { ...body, ...set };
  for (const field of findRefusedSampling(body, quirks, sent)) drop(field);
  return { body, dropped, effort: effort === requested ? undefined : effort };
}

const messageFields = ['role', 'content', 'name', 'tool_calls', 'tool_call_id'];
const callFields = ['id', 'type', 'function', 'custom'];

/** For upstreams that refuse unknown fields, also inside content and calls. */
function filterMessage(
  message: JsonRecord,
  { acceptedFields, acceptedEchoes = echoedFields }: Quirks,
): JsonRecord {
  if (!acceptedFields) return message;
  const { content, tool_calls: calls, ...known } = pickFields(message, [...messageFields, ...acceptedEchoes]);
  const call = (value: unknown): unknown =>
    isRecord(value) ? pickFields(value, [...callFields, ...acceptedEchoes]) : value;
  return {
    ...known,
    ...(content !== undefined && {
      content: Array.isArray(content) ? content.map(filterContentPart) : content,
    }),
    ...(calls !== undefined && { tool_calls: Array.isArray(calls) ? calls.map(call) : calls }),
  };
}

/** Besides its type, a content part has one field, named like the type. */
const filterContentPart = (part: unknown): unknown =>
  isRecord(part) ? pickFields(part, ['type', String(part['type'])]) : part;

// Limits on output tokens. Never above the channel's maximum and what the balance covers.

const limitFieldsOf = ({ limitField }: RequestSettings): string[] => [
  ...new Set([...limitFields, limitField]),
];

/** Moves the limit to a field that the upstream accepts, and lowers it. Changes `body`. */
function setLimits(body: JsonRecord, settings: RequestSettings): void {
  const { omissions, quirks, maxOutputTokens, outputTokensLimit, limitField } = settings;
  const fields = limitFieldsOf(settings);
  if (omissions.has('limit')) {
    for (const field of fields) delete body[field];
    return;
  }
  const { limitField: accepted } = quirks;
  for (const field of limitFields) {
    if (accepted === undefined || field === accepted || !(field in body)) continue;
    body[accepted] ??= body[field];
    delete body[field];
  }
  const most = Math.min(maxOutputTokens ?? Infinity, outputTokensLimit ?? Infinity);
  const sent = fields.filter((field) => typeof body[field] === 'number');
  for (const field of sent) body[field] = Math.min(Number(body[field]), most);
  if (sent.length === 0 && outputTokensLimit !== undefined) body[limitField] = most;
}

/** The smallest limit that is sent. */
function limitOf(body: JsonRecord, settings: RequestSettings): number | undefined {
  const limits = limitFieldsOf(settings).map((field) => body[field]);
  const sent = limits.filter((limit) => typeof limit === 'number');
  return sent.length === 0 ? undefined : Math.min(...sent);
}

export const chat: DialectCode = { body: buildChatBody, tenantFields, Reader: ChatReader };
