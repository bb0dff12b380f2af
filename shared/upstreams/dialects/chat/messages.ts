/**
 * Converts the messages of a call. A pure function of the transcript that only appends: what an earlier turn became
 * stays as it is when the transcript grows, because upstreams cache by prefix.
 */
import type { CanonicalCall, ChatContentPart, ChatMessage } from '../../../wire/canonical-call.ts';
import { asRecord, isRecord, listIn, textIn, withoutNulls, type JsonRecord } from '../../../wire/json.ts';
import type { CallIds } from '../../call-ids.ts';
import { mappedIds, wrappedInput } from '../../request-parts.ts';
import { CannotCarry, type RequestSettings } from '../../dialect.ts';
import { continuation, type Quirks } from '../../quirks.ts';
import { knownMessage } from './fields.ts';
import { withState } from './state.ts';

/** Throws CannotCarry. `wraps`: custom calls are sent as calls of functions. */
export function chatMessages(call: CanonicalCall, settings: RequestSettings, wraps: boolean): JsonRecord[] {
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
  for (const message of messages) {
    if (message.role !== 'tool') flush();
    const converted = commonFields(message);
    if (message.role === 'tool' && Array.isArray(message.content)) {
      converted['content'] = textOfResult(message.content, call.form);
      images.push(...message.content.filter(({ type }) => type !== 'text'));
    }
    if (message.role === 'assistant') {
      if (message.tool_calls) {
        const calls = message.tool_calls.map((each) => toolCall(each, wraps, quirks));
        converted['tool_calls'] = calls;
        if (quirks.nullContent === 'empty' && calls.length > 0) converted['content'] ??= '';
      }
      const isForeign = settings.foreign?.has(message) === true;
      const without = isForeign ? new Set([...settings.without, 'state' as const]) : settings.without;
      sent.push(withState(converted, settings.states.get(message), { ...settings, without }));
    } else sent.push(converted);
  }
  flush();
  const last = sent.at(-1);
  if (quirks.lastTurn === 'user' && last?.['role'] === 'assistant' && idsOf(last).length === 0)
    sent.push({ role: 'user', content: continuation });
  const known = sent.map((message) => knownMessage(message, quirks));
  const named = withUpstreamIds(known, settings);
  return quirks.system === 'first' ? systemFirst(named) : named;
}

/** `developer` is OpenAI's newer name for `system`. A null content is kept: it accompanies tool calls. */
function commonFields(message: ChatMessage): JsonRecord {
  const converted = withoutNulls(message);
  if (message.role === 'developer') converted['role'] = 'system';
  if (message.content === null) converted['content'] = null;
  delete converted['phase'];
  return converted;
}

/** Only the text of a tool's result: as parts if the client wrote parts here, else as the string that all accept. */
function textOfResult(parts: readonly ChatContentPart[], form: string): string | readonly ChatContentPart[] {
  const texts = parts.filter(({ type }) => type === 'text');
  if (form === 'chat' && texts.length > 0) return texts;
  return texts.map(({ text }) => text ?? '').join('\n');
}

/** The index is a matter of streams. Clients echo it, and upstreams that refuse other echoes refuse it, too. */
function toolCall(source: object, wraps: boolean, { echoes }: Quirks): JsonRecord {
  const call = withoutNulls(source);
  if (echoes) delete call['index'];
  if (!wraps || call['type'] !== 'custom') return call;
  const { custom, ...rest } = call;
  const { name, input } = asRecord(custom);
  return { ...rest, type: 'function', function: { name, arguments: wrappedInput(textIn(input)) } };
}

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

/** Gives the vendor its own ids back where they are this channel's, and maps what it does not accept. */
function withUpstreamIds(messages: JsonRecord[], { callIds, quirks }: RequestSettings): JsonRecord[] {
  const named = ownIds(messages, callIds);
  const ids = mappedIds(named.flatMap(idsOf), quirks.callIds);
  return named.map((message) => renamed(message, (id) => ids.get(id) ?? id));
}

/** A vendor that repeats an id within one turn gets the client's ids there, which tell its results apart. */
function ownIds(messages: readonly JsonRecord[], callIds: CallIds): JsonRecord[] {
  let turn = new Map<string, string>();
  return messages.map((message) => {
    if (Array.isArray(message['tool_calls'])) {
      turn = new Map();
      const used = new Set<string>();
      for (const id of idsOf(message)) {
        const own = callIds.vendorId(id);
        const given = turn.get(id) ?? (used.has(own) ? id : own);
        used.add(given);
        turn.set(id, given);
      }
    }
    return renamed(message, (id) => turn.get(id) ?? callIds.vendorId(id));
  });
}

function idsOf(message: JsonRecord): string[] {
  const ids = [...listIn(message['tool_calls']).map((call) => asRecord(call)['id']), message['tool_call_id']];
  return ids.filter((id) => typeof id === 'string');
}

function renamed(message: JsonRecord, rename: (id: string) => string): JsonRecord {
  const { tool_calls: calls, tool_call_id: answered } = message;
  const renamedCall = (call: unknown): unknown =>
    isRecord(call) && typeof call['id'] === 'string' ? { ...call, id: rename(call['id']) } : call;
  return {
    ...message,
    ...(Array.isArray(calls) && { tool_calls: calls.map(renamedCall) }),
    ...(typeof answered === 'string' && { tool_call_id: rename(answered) }),
  };
}

/** One system message, first, with all texts in order. */
function systemFirst(messages: readonly JsonRecord[]): JsonRecord[] {
  const contents = messages.filter(({ role }) => role === 'system').map(({ content }) => content);
  if (contents.length === 0) return [...messages];
  const plain = contents.every((content) => !Array.isArray(content));
  const content = plain
    ? contents.filter((text) => typeof text === 'string' && text !== '').join('\n\n')
    : contents.flatMap((each) => (Array.isArray(each) ? each : [{ type: 'text', text: each }]));
  return [{ role: 'system', content }, ...messages.filter(({ role }) => role !== 'system')];
}
