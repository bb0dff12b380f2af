import type { ChatUsage, AnswerIdentity } from '../../wire/chat-response.ts';
import type { ResponsesRequest } from './responses-request.ts';
import type { OutputItem, ResponseObject, ResponsesUsage } from './responses-response.ts';
import { isRecord, type JsonRecord } from '../../wire/json-record.ts';
import { plainTool } from './read-tools.ts';

/** The response object at the start of an answer. Later versions replace the fields that changed. */
export function startedResponse(identity: AnswerIdentity, request: ResponsesRequest): ResponseObject {
  return {
    id: `resp-${identity.requestId}`,
    object: 'response',
    created_at: identity.created,
    completed_at: null,
    status: 'in_progress',
    model: identity.model,
    output: [],
    usage: null,
    error: null,
    incomplete_details: null,
    ...echoOf(request),
  };
}

/** The fields of the request that OpenAI's and Open Responses' schemas require in the answer, with OpenAI's defaults. */
function echoOf(request: ResponsesRequest): Record<string, unknown> {
  return {
    background: false,
    frequency_penalty: 0,
    instructions: request.instructions ?? null,
    max_output_tokens: request.max_output_tokens ?? null,
    max_tool_calls: null,
    metadata: isRecord(request['metadata']) ? request['metadata'] : {},
    parallel_tool_calls: request.parallel_tool_calls ?? true,
    presence_penalty: 0,
    previous_response_id: null,
    prompt_cache_key: textOrNull(request['prompt_cache_key']),
    reasoning: { effort: request.reasoning?.effort ?? null, summary: null },
    safety_identifier: textOrNull(request['safety_identifier']),
    service_tier: 'default',
    store: false,
    temperature: request.temperature ?? 1,
    text: { ...request.text, format: request.text?.format ?? { type: 'text' } },
    tool_choice: echoedChoice(request.tool_choice),
    tools: (request.tools ?? []).map(plainTool).filter(isWhole).map(echoedTool),
    top_logprobs: 0,
    top_p: request.top_p ?? 1,
    truncation: 'disabled',
  };
}

const isWhole = ({ type, name }: JsonRecord): boolean => type !== 'function' || typeof name === 'string';

/** OpenAI's schema requires all keys of a function tool. */
function echoedTool(tool: JsonRecord): JsonRecord {
  if (tool['type'] !== 'function') return tool;
  const { description, parameters, strict } = tool;
  return {
    ...tool,
    description: textOrNull(description),
    parameters: isRecord(parameters) ? parameters : null,
    strict: typeof strict === 'boolean' ? strict : null,
  };
}

const textOrNull = (value: unknown): string | null => (typeof value === 'string' ? value : null);

/** OpenAI's schema requires a type in a choice, so a choice without one becomes `auto`. */
const echoedChoice = (choice: unknown): unknown =>
  typeof choice === 'string' || (isRecord(choice) && typeof choice['type'] === 'string') ? choice : 'auto';

export const responsesUsage = (usage: ChatUsage): ResponsesUsage => ({
  input_tokens: usage.prompt_tokens,
  input_tokens_details: {
    cached_tokens: usage.prompt_tokens_details?.cached_tokens ?? 0,
    cache_write_tokens: 0,
  },
  output_tokens: usage.completion_tokens,
  output_tokens_details: { reasoning_tokens: usage.completion_tokens_details?.reasoning_tokens ?? 0 },
  total_tokens: usage.total_tokens,
});

const incompleteReasons = { length: 'max_output_tokens', content_filter: 'content_filter' } as const;

/** Why an answer with this finish reason is incomplete; undefined if it is complete. */
export const incompleteReason = (finish: string): 'max_output_tokens' | 'content_filter' | undefined =>
  finish === 'length' || finish === 'content_filter' ? incompleteReasons[finish] : undefined;

export interface AnswerEnd {
  output: OutputItem[];
  usage: ChatUsage;
  finish: string;
  /** Official mode only, in yuan. */
  quota: number | undefined;
  /** Unix seconds. */
  endedAt: number;
}

/** The response object at the end of an answer. */
export function finishedResponse(started: ResponseObject, end: AnswerEnd): ResponseObject {
  const reason = incompleteReason(end.finish);
  return {
    ...started,
    status: reason ? 'incomplete' : 'completed',
    completed_at: reason ? null : end.endedAt,
    output: end.output,
    usage: responsesUsage(end.usage),
    incomplete_details: reason ? { reason } : null,
    ...(end.quota === undefined ? {} : { quota: end.quota }),
  };
}
