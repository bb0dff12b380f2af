/** OpenAI's Chat Completions, with the variants of compatible upstreams. */
import type { CanonicalCall } from '../../../wire/canonical-call.ts';
import { setByRow } from '../../request-parts.ts';
import { isRecord, type JsonRecord, withoutNulls } from '../../../wire/json.ts';
import type { RequestSettings, SentBody, Dialect } from '../../dialect.ts';
import { fittedFields, chatTools } from './fields.ts';
import { chatMessages } from './messages.ts';
import { limitFields } from '../../quirks.ts';
import { ChatReader } from './events.ts';
import { chatError } from './delta.ts';

// Builds the body of a Chat Completions request for one channel. Never changes the call.

/** Fields that are set apart from the others, or never sent. */
const elsewhere = ['official', 'stream', 'stream_options', 'model'];

/**
 * Converts a call to the body for an upstream. Fields that the relay does not know are sent if the client wrote
 * Chat Completions. Requests a stream with usage unless the channel does not support it. Throws CannotCarry for what
 * must not be left out and has no form here.
 */
export function chatBody(call: CanonicalCall, settings: RequestSettings): SentBody {
  const { form, request, unknown } = call;
  const { quirks } = settings;
  const asked: JsonRecord = withoutNulls(form === 'chat' ? { ...request, ...unknown } : request);
  for (const field of elsewhere) delete asked[field];
  delete asked['messages'];
  const tools = chatTools(call, settings);
  setOrDelete(asked, 'tools', tools.tools);
  setOrDelete(asked, 'tool_choice', tools.choice);
  if (tools.tools === undefined) delete asked['parallel_tool_calls'];
  setLimits(asked, settings);

  const messages = chatMessages(call, settings, tools.wraps);
  const { body: fields, dropped, effort } = fittedFields(asked, settings);
  const body: JsonRecord = { model: settings.model, messages, ...fields };
  const left = form === 'chat' ? [] : Object.keys(unknown);
  const unsent = [...left, ...tools.dropped, ...dropped, ...statelessNames(call, settings)];
  setByRow(body, settings);
  delete body['stream_options'];
  if (settings.stream && settings.includeUsage && (quirks.fields?.has('stream_options') ?? true))
    body['stream_options'] = { ...withoutNulls(request.stream_options ?? {}), include_usage: true };
  return {
    body,
    dropped: [...new Set(unsent)],
    effort,
    toolChoice: tools.changedChoice,
    outputTokensMax: limitOf(body, settings),
    wrapped: tools.wrapped,
  };
}

function setOrDelete(body: JsonRecord, field: string, value: unknown): void {
  if (value === undefined) delete body[field];
  else body[field] = value;
}

/** A repeat without state says so, if state was left out. */
function statelessNames({ request }: CanonicalCall, { without, states }: RequestSettings): string[] {
  if (!without.has('state') && !without.has('echoes')) return [];
  const echoed = request.messages.some(
    (message) =>
      isRecord(message['extra_content']) ||
      Array.isArray(message['reasoning_details']) ||
      message.tool_calls?.some((call) => isRecord(call['extra_content'])),
  );
  return states.size > 0 || echoed ? ['reasoning'] : [];
}

// Limits on output tokens. Never asks for more than the channel's maximum and what the balance covers.

const fieldsOf = ({ limitField }: RequestSettings): string[] => [...new Set([...limitFields, limitField])];

/** Puts the limit into a field that the upstream accepts, and lowers it. Changes `body`. */
function setLimits(body: JsonRecord, settings: RequestSettings): void {
  if (settings.without.has('limit')) {
    for (const field of fieldsOf(settings)) delete body[field];
    return;
  }
  moveLimit(body, settings.quirks.limitFields);
  lowerLimits(body, settings);
}

/** The limit that is sent: the smallest, if there are several. */
function limitOf(body: JsonRecord, settings: RequestSettings): number | undefined {
  const limits = fieldsOf(settings).map((field) => body[field]);
  const sent = limits.filter((limit) => typeof limit === 'number');
  return sent.length === 0 ? undefined : Math.min(...sent);
}

/** Moves a limit out of a field that the upstream does not accept. */
function moveLimit(body: JsonRecord, accepted: readonly string[] | undefined): void {
  const [first] = accepted ?? [];
  if (first === undefined) return;
  for (const field of limitFields.filter((each) => !accepted?.includes(each))) {
    body[first] ??= body[field];
    if (body[first] === undefined) delete body[first];
    delete body[field];
  }
}

function lowerLimits(body: JsonRecord, settings: RequestSettings): void {
  const { maxOutputTokens, outputTokensLimit, limitField } = settings;
  const max = Math.min(maxOutputTokens ?? Infinity, outputTokensLimit ?? Infinity);
  const sent = fieldsOf(settings).filter((field) => typeof body[field] === 'number');
  for (const field of sent) body[field] = Math.min(Number(body[field]), max);
  if (sent.length === 0 && outputTokensLimit !== undefined) body[limitField] = max;
}

export const chat: Dialect = {
  name: 'chat',
  path: '/chat/completions',
  body: chatBody,
  Reader: ChatReader,
  error: chatError,
};
