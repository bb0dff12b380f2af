import type { SentFacts } from '../endpoint.ts';
import type { ChatRequest } from '../../wire/chat-request.ts';
import { isRecord, type JsonRecord } from '../../wire/json-record.ts';
import { plainTool } from './read-tools.ts';
import { summaryKind, topLogprobs } from './read-fields.ts';
import type { ResponsesRequest } from './responses-request.ts';

/**
 * The fields of the request that OpenAI's and Open Responses' schemas require in the answer, as they are in force:
 * what was not sent has OpenAI's default.
 */
export function echoOf(request: ResponsesRequest, chat: ChatRequest, sent: SentFacts): JsonRecord {
  const lost = new Set(sent.dropped);
  const inForce = <T>(field: string, value: T): T | undefined => (lost.has(field) ? undefined : value);
  return {
    background: request['background'] === true,
    frequency_penalty: numberOr(0, inForce('frequency_penalty', request['frequency_penalty'])),
    instructions: request.instructions ?? null,
    max_output_tokens: limitInForce(request.max_output_tokens ?? null, sent),
    max_tool_calls: countOrNull(inForce('max_tool_calls', request['max_tool_calls'])),
    metadata: recordOrEmpty(inForce('metadata', request['metadata'])),
    parallel_tool_calls: inForce('parallel_tool_calls', request.parallel_tool_calls) ?? true,
    presence_penalty: numberOr(0, inForce('presence_penalty', request['presence_penalty'])),
    previous_response_id: request.previous_response_id ?? null,
    prompt_cache_key: textOrNull(inForce('prompt_cache_key', request['prompt_cache_key'])),
    reasoning: {
      effort: inForce('reasoning_effort', sent.effort ?? request.reasoning?.effort) ?? null,
      summary: summaryKind(request) ?? null,
    },
    safety_identifier: textOrNull(inForce('safety_identifier', request['safety_identifier'])),
    service_tier: sent.serviceTier ?? 'default',
    store: false,
    temperature: inForce('temperature', request.temperature) ?? 1,
    text: echoedText(request.text, lost),
    tool_choice: echoedChoice(sent.toolChoice ?? inForce('tool_choice', chosen(request, chat))),
    tools: echoedTools(request, lost.has('tools')),
    top_logprobs: lost.has('logprobs') ? 0 : (inForce('top_logprobs', topLogprobs(request)) ?? 0),
    top_p: inForce('top_p', request.top_p) ?? 1,
    truncation: inForce('truncation', request['truncation']) === 'auto' ? 'auto' : 'disabled',
  };
}

/** Null where the client set none, since a limit of the relay's own is no field of its request. */
const limitInForce = (asked: number | null, { outputTokensMax }: SentFacts): number | null =>
  asked === null || outputTokensMax === undefined ? asked : outputTokensMax;

function echoedText(text: ResponsesRequest['text'], lost: ReadonlySet<string>): JsonRecord {
  const { verbosity, ...rest } = text ?? {};
  const format = text?.format ?? { type: 'text' };
  return { ...rest, ...(verbosity !== undefined && !lost.has('verbosity') && { verbosity }), format };
}

/** The choice that the call was made with. The canonical call has none where no tool is left to choose among. */
const chosen = ({ tool_choice: choice }: ResponsesRequest, { tool_choice: used }: ChatRequest): unknown =>
  used === 'auto' ? used : choice;

/** Without the tools that run at the upstream, if those were left out. */
const echoedTools = ({ tools }: ResponsesRequest, lostHosted: boolean): JsonRecord[] =>
  (tools ?? [])
    .map(plainTool)
    .filter((tool) => isWhole(tool) && !(lostHosted && !callersTypes.has(String(tool['type']))))
    .map(echoedTool);
const callersTypes = new Set(['function', 'custom', 'namespace']);

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
const numberOr = (usual: number, value: unknown): number => (typeof value === 'number' ? value : usual);
const countOrNull = (value: unknown): number | null => (Number.isInteger(value) ? Number(value) : null);
const recordOrEmpty = (value: unknown): JsonRecord => (isRecord(value) ? value : {});

/** OpenAI's schema requires a type in a choice, so a choice without one becomes `auto`. */
const echoedChoice = (choice: unknown): unknown =>
  typeof choice === 'string' || (isRecord(choice) && typeof choice['type'] === 'string') ? choice : 'auto';
