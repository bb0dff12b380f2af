/**
 * Reads a Messages body into the canonical call, and keeps the body itself, which goes up as it came to an upstream that speaks
 * Messages. Must never refuse a field that the vendor may know.
 */
import type { ZodMiniType } from 'zod/mini';
import type { ChatRequest, ChatTool, NativeCall, OwnForm } from '../../wire/canonical-call.ts';
import { findDetails } from '../../wire/details.ts';
import { asRecord, isRecord, recordsIn, textIn, removeNulls, type JsonRecord } from '../../wire/json.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import type { EndpointRequest } from '../endpoint.ts';
import { parseRequest } from '../parse-request.ts';
import { endpointRoutes } from '../routes.ts';
import { conversationOf } from './conversation.ts';
import { type MessagesRequest, ToolNames } from './request.ts';

/** Fields that the relay decides or writes itself, whatever the upstream speaks. */
const decided = new Set(
  'model messages system tools max_tokens stream metadata service_tier official'.split(' '),
);
/** Fields that other forms say otherwise, so that no other upstream misses them. */
const translated = new Set(
  // Other vendors cache by themselves.
  'tool_choice stop_sequences temperature top_p top_k thinking output_config cache_control speed'.split(' '),
);

const isUnknown = (field: string): boolean => !decided.has(field) && !translated.has(field);

/** See `findDetails`. */
const details = {
  messages: ['toolset_name', 'caller', 'clear_at', 'output_config'],
  tools: ['allowed_callers', 'defer_loading', 'eager_input_streaming', 'input_examples'],
};

type Headers = Readonly<Record<string, string | undefined>>;

/** A body as it was read. */
export type ReadBody = Omit<EndpointRequest, 'renderer'> & { names: ToolNames };

/** @param schema of a call, or of a count */
export function readBody(schema: ZodMiniType<MessagesRequest>, body: unknown, headers: Headers): ReadBody {
  const request = parseRequest(schema, body);
  const thread = asRecord(request['thread']);
  if (request.messages.length === 0 && thread['type'] !== 'continue')
    throw new InvalidRequest('invalid_value', 'messages', "'messages' must be an array that is not empty.");
  const names = new ToolNames(recordsIn(request.tools));
  const { messages, sealed, lost, only, unknown: unknownBlocks, known } = conversationOf(request, names);
  const { user_id: user, ...metadata } = request.metadata ?? {};
  const tools = toolsOf(request, names);
  const fields = Object.entries(removeNulls(request)).filter(([field]) => !decided.has(field));
  const chat: ChatRequest = {
    model: request.model,
    messages,
    ...(tools.callers.length > 0 && { tools: tools.callers, ...toolChoice(request, tools, names) }),
    ...(request.stop_sequences?.length && { stop: request.stop_sequences }),
    ...removeNulls({
      temperature: request.temperature,
      top_p: request.top_p,
      top_k: request.top_k,
      reasoning_effort: effortOf(request),
      user,
      service_tier: tierOf(request),
      response_format: formatOf(request),
      official: request.official,
    }),
  };
  const passed = listPassedHeaders(headers);
  const ownForm = findOwnForm(request, passed.betas) ?? only;
  const native: NativeCall = {
    body: removeNulls({
      system: request.system,
      messages: request.messages,
      tools: request.tools,
      service_tier: request.service_tier,
      ...(Object.keys(metadata).length > 0 && { metadata }),
    }),
    counted: [...unknownBlocks, ...tools.others, ...tools.beside],
    lost: [...lost, ...(tools.others.length > 0 ? ['tools'] : [])],
    headers: passed,
    known,
    ...(ownForm && { only: ownForm }),
  };
  const conversation = headers['x-claude-code-session-id'];
  return {
    call: {
      form: endpointRoutes.messages.name,
      request: chat,
      unknown: {
        ...Object.fromEntries(fields.filter(([field]) => !translated.has(field))),
        ...findProfile(headers),
      },
      served: Object.fromEntries(fields.filter(([field]) => translated.has(field))),
      native,
      messageFields: findDetails(request, details),
      clientNames: { stop: 'stop_sequences', response_format: 'output_config.format' },
      ...(conversation && { conversation }),
    },
    outputTokensMax: request.max_tokens ?? undefined,
    droppedTools: tools.others.length,
    sealed,
    continues: textIn(thread['previous_message_id']) || undefined,
    // A client that asks for thinking shows it and sends it back.
    keepsState: isThinking(request),
    names,
  };
}

// Headers that go up as they came: a version of the API and features of it belong to the body that was written for them.

const versionPattern = /^\d{4}-\d{2}-\d{2}$/;
const betaPattern = /^[\w.-]{1,64}$/;
const betasMax = 32;

/** Never taken from a client: only the account's row says which of the operator's customers a call is for. */
const profileHeader = 'anthropic-user-profile-id';
const profileBeta = /^user-profiles-(?!billing-)/;

/** Makes the client's header an unknown field, so that it is reported as dropped. */
const findProfile = ({ [profileHeader]: profile }: Headers): JsonRecord =>
  profile ? { [profileHeader]: profile } : {};

function listPassedHeaders(headers: Headers): NativeCall['headers'] {
  const version = headers['anthropic-version'] ?? '';
  const asked = (headers['anthropic-beta'] ?? '').split(',').map((each) => each.trim());
  const betas = asked.filter((each) => betaPattern.test(each) && !profileBeta.test(each)).slice(0, betasMax);
  return {
    ...(versionPattern.test(version) && { version }),
    ...(betas.length > 0 && { betas }),
  };
}

// Fields that only vendors of this form serve. Without them a model would see only the last message, or nobody would check its
// tools, so the call is refused where they can't be sent.

/** Fields that name state stored by the vendor [platform.claude.com, "Message threads", November 2026]. */
const stateFields = ['thread', 'resumption'];
const stateName = /(?:^|_)(?:id|token)$/;
const betaDate = /-\d{4}-\d\d-\d\d$/;

function findOwnForm(request: MessagesRequest, betas: readonly string[] = []): OwnForm | undefined {
  const named = betas.map((beta) => beta.replace(betaDate, '').replaceAll('-', '_'));
  const fields: JsonRecord = request;
  const isContinued = (field: string): boolean => {
    const { type, ...names } = asRecord(fields[field]);
    return type === 'continue' || Object.keys(names).some((name) => stateName.test(name));
  };
  const held = [...stateFields, ...named.filter(isUnknown)].find(isContinued);
  if (held !== undefined)
    return {
      param: held,
      isField: true,
      message: `${held}: this model does not store conversations. Send all messages, without '${held}'.`,
      details: { error_code: `${held}_unsupported_request`, unsupported: [held] },
    };
  if (Object.keys(fields['safeguards'] ?? {}).length === 0) return undefined;
  // Claude Code looks for these words, and then checks tools itself [claude-code 2.1.290].
  const message = 'safeguards: Extra inputs are not permitted. This model does not check the use of tools.';
  return { param: 'safeguards', isField: true, message };
}

// Thinking, form and tier of an answer, in the words of the canonical call.

function isThinking({ thinking }: MessagesRequest): boolean {
  return thinking?.type === 'enabled' || thinking?.type === 'adaptive';
}

/** The largest budget of each effort, as the vendor's own budgets go up. */
const budgetEfforts = [
  [4_096, 'low'],
  [12_288, 'medium'],
] as const;

/** `adaptive` alone leaves the effort to the model, which may be one that does not think. */
function effortOf({ thinking, output_config: config }: MessagesRequest): string | undefined {
  if (thinking?.type === 'disabled') return 'none';
  if (config?.effort) return config.effort;
  const budget = Number(thinking?.['budget_tokens']);
  if (thinking?.type !== 'enabled' || !Number.isFinite(budget)) return undefined;
  return budgetEfforts.find(([most]) => budget <= most)?.[1] ?? 'high';
}

/** Fast mode is a tier of its own. */
const tierOf = ({ speed, service_tier: tier }: MessagesRequest): string | undefined =>
  speed === 'fast' ? speed : tier === 'standard_only' ? 'default' : (tier ?? undefined);

/** `output_format` is the name that it had while it was a beta. */
function formatOf(request: MessagesRequest): ChatRequest['response_format'] {
  const format = asRecord(request.output_config?.['format'] ?? request['output_format']);
  if (format['type'] !== 'json_schema') return undefined;
  return { type: 'json_schema', json_schema: { name: 'answer', schema: format['schema'], strict: true } };
}

// Tools that the caller runs become functions. Others are in the native body alone: the vendor knows their schemas.

/** Claude Code never calls this tool. It keeps other tools deferred, which no other form supports [Claude Code 2.1.332]. */
const placeholderTool = 'DeferredToolPlaceholder';

interface Tools {
  callers: ChatTool[];
  others: JsonRecord[];
  /** Fields of a function beside its own, such as examples of its input. */
  beside: JsonRecord[];
}

function toolsOf(request: MessagesRequest, names: ToolNames): Tools {
  const callers: ChatTool[] = [];
  const others: JsonRecord[] = [];
  const besides: JsonRecord[] = [];
  for (const tool of request.tools ?? []) {
    const { name, description, input_schema: parameters, strict, ...beside } = tool as JsonRecord;
    if (name === placeholderTool && beside['defer_loading'] === true) continue;
    const isFunction =
      (tool.type ?? 'custom') === 'custom' && typeof name === 'string' && isRecord(parameters);
    if (!isFunction) others.push(tool);
    else {
      if (Object.values(beside).some((value) => typeof value === 'object')) besides.push(beside);
      callers.push({
        type: 'function',
        function: {
          name: names.shortenName(name),
          ...(typeof description === 'string' && { description }),
          parameters: Object.keys(parameters).length > 0 ? parameters : { type: 'object' },
          ...(strict === true && { strict }),
        },
      });
    }
  }
  return { callers, others, beside: besides };
}

function toolChoice(
  { tool_choice: choice }: MessagesRequest,
  { others }: Tools,
  names: ToolNames,
): Partial<ChatRequest> {
  if (!choice) return {};
  const isSerial = choice['disable_parallel_tool_use'] === true;
  const isOther = choice.type === 'tool' && others.some(({ name }) => name === choice['name']);
  return {
    ...(choice.type !== 'auto' && !isOther && { tool_choice: translateChoice(choice, names) }),
    ...(isSerial && { parallel_tool_calls: false }),
  };
}

function translateChoice({ type, name }: JsonRecord, names: ToolNames): unknown {
  if (type === 'none') return 'none';
  if (type === 'tool') return { type: 'function', function: { name: names.shortenName(textIn(name)) } };
  return type === 'any' ? 'required' : 'auto';
}
