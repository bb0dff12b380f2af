/** Builds the body of a Chat Completions request for one channel. Never changes the call. */
import type { CanonicalCall } from '../../../wire/canonical-call.ts';
import { isRecord, type JsonRecord, withoutNulls } from '../../../wire/json-record.ts';
import type { RequestSettings, SentBody } from '../../dialect.ts';
import { fittedFields } from './fields.ts';
import { limitOf, setLimits } from './limits.ts';
import { chatMessages } from './messages.ts';
import { chatTools } from './tools.ts';

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
  Object.assign(body, settings.set);
  for (const field of settings.drop) delete body[field];
  delete body['stream'];
  delete body['stream_options'];
  if (settings.stream) {
    body['stream'] = true;
    if (settings.includeUsage && (quirks.fields?.has('stream_options') ?? true))
      body['stream_options'] = { ...withoutNulls(request.stream_options ?? {}), include_usage: true };
  }
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
