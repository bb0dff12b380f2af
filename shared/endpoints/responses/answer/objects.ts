import type { ChatUsage, AnswerIdentity } from '../../../wire/chat-response.ts';
import type { OutputItem, ResponseObject, ResponsesUsage } from './responses-response.ts';

/** The response object at the start of an answer, without the fields of the request that it repeats. */
export function startedResponse(identity: AnswerIdentity): ResponseObject {
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
  };
}

export const responsesUsage = (usage: ChatUsage): ResponsesUsage => ({
  input_tokens: usage.prompt_tokens,
  input_tokens_details: {
    cached_tokens: usage.prompt_tokens_details?.cached_tokens ?? 0,
    cache_write_tokens: usage.prompt_tokens_details?.cache_write_tokens ?? 0,
    ...writtenForAnHour(usage),
  },
  output_tokens: usage.completion_tokens,
  output_tokens_details: { reasoning_tokens: usage.completion_tokens_details?.reasoning_tokens ?? 0 },
  total_tokens: usage.total_tokens,
});

function writtenForAnHour({ prompt_tokens_details: details }: ChatUsage): { cache_write_1h_tokens?: number } {
  const written = details?.cache_write_1h_tokens ?? 0;
  return written > 0 ? { cache_write_1h_tokens: written } : {};
}

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
