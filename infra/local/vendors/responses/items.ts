import type { Turn } from '../script/script.ts';
import type { Counts } from '../script/tokens.ts';
import { isObject } from '../script/vendor.ts';
import { asks } from '../script/words.ts';
import { encrypted, turnDigits } from './encrypted.ts';
import { promptParts, transcriptOf, type ResponsesCall } from './request.ts';

type Json = Record<string, unknown>;

/** The output items of a turn. Thinking that is empty gives no reasoning item. */
export function outputItems(call: ResponsesCall, turn: Turn): Json[] {
  const digits = turnDigits(call.organization, promptParts(call));
  const reasons = turn.thinking !== '';
  const status = turn.finish === 'length' ? 'incomplete' : 'completed';
  const calls = turn.calls.map(({ name, input, custom, namespace }, index) => {
    // Calls of a turn with reasoning are known by their ids.
    const id = `${digits}${reasons ? 'r' : 'p'}${index}`;
    const shared = { call_id: `call_${id}`, name, ...(namespace !== undefined && { namespace }) };
    const isLast = index === turn.calls.length - 1;
    return custom
      ? { id: `ctc_${id}`, type: 'custom_tool_call', status: isLast ? status : 'completed', ...shared, input }
      : {
          id: `fc_${id}`,
          type: 'function_call',
          status: isLast ? status : 'completed',
          ...shared,
          arguments: input,
        };
  });
  const isCut = status === 'incomplete' && calls.length === 0;
  return [
    ...(reasons ? [reasoningItem(call, `rs_${digits}`, turn.thinking)] : []),
    ...(turn.text === ''
      ? []
      : [messageItem(call, turn, { id: `msg_${digits}`, status: isCut ? status : 'completed' })]),
    ...calls,
  ];
}

function reasoningItem({ body, organization }: ResponsesCall, id: string, text: string): Json {
  const reasoning = isObject(body['reasoning']) ? body['reasoning'] : {};
  const included = Array.isArray(body['include']) && body['include'].includes('reasoning.encrypted_content');
  return {
    id,
    type: 'reasoning',
    summary: reasoning['summary'] ? [{ type: 'summary_text', text }] : [],
    ...(included && { encrypted_content: encrypted({ organization, item: id, text }) }),
  };
}

function messageItem(call: ResponsesCall, turn: Turn, { id, status }: { id: string; status: string }): Json {
  const cited = asks(transcriptOf(call).said, 'cite') && turn.finish === 'stop';
  const citation = {
    type: 'url_citation',
    start_index: 0,
    end_index: 3,
    title: 'Example',
    url: 'https://example.com/',
  };
  const part =
    turn.finish === 'refusal'
      ? { type: 'refusal', refusal: turn.text }
      : { type: 'output_text', text: turn.text, annotations: cited ? [citation] : [], logprobs: [] };
  const phase = turn.calls.length > 0 ? 'commentary' : 'final_answer';
  return { id, type: 'message', role: 'assistant', status, phase, content: [part] };
}

export const usageOf = ({ input, cacheRead, cacheWrite5m, output, thinking }: Counts): Json => ({
  input_tokens: input + cacheRead + cacheWrite5m,
  input_tokens_details: { cached_tokens: cacheRead, cache_write_tokens: cacheWrite5m },
  output_tokens: output,
  output_tokens_details: { reasoning_tokens: thinking },
  total_tokens: input + cacheRead + cacheWrite5m + output,
});

/** The response object, as it is before anything was made. */
export function emptyResponse(call: ResponsesCall): Json {
  const { body, model } = call;
  return {
    id: `resp_${turnDigits(call.organization, promptParts(call))}`,
    object: 'response',
    created_at: 1_790_000_000,
    status: 'in_progress',
    background: false,
    completed_at: null,
    error: null,
    incomplete_details: null,
    instructions: body['instructions'] ?? null,
    max_output_tokens: body['max_output_tokens'] ?? null,
    max_tool_calls: body['max_tool_calls'] ?? null,
    metadata: body['metadata'] ?? {},
    model,
    output: [],
    parallel_tool_calls: body['parallel_tool_calls'] ?? true,
    previous_response_id: null,
    prompt_cache_key: body['prompt_cache_key'] ?? null,
    reasoning: { effort: 'medium', summary: null, ...(body['reasoning'] as object | undefined) },
    safety_identifier: body['safety_identifier'] ?? null,
    service_tier: 'default',
    store: body['store'] ?? true,
    temperature: body['temperature'] ?? 1,
    text: { format: { type: 'text' }, verbosity: 'medium', ...(body['text'] as object | undefined) },
    tool_choice: body['tool_choice'] ?? 'auto',
    tools: body['tools'] ?? [],
    top_logprobs: body['top_logprobs'] ?? 0,
    top_p: body['top_p'] ?? 1,
    truncation: body['truncation'] ?? 'disabled',
    usage: null,
    user: body['user'] ?? null,
  };
}

export function finishedResponse(
  call: ResponsesCall,
  output: Json[],
  { turn, counts }: { turn: Turn; counts: Counts },
): Json {
  const cut = turn.finish === 'length';
  return {
    ...emptyResponse(call),
    status: cut ? 'incomplete' : 'completed',
    completed_at: cut ? null : 1_790_000_001,
    incomplete_details: cut ? { reason: 'max_output_tokens' } : null,
    output,
    usage: usageOf(counts),
  };
}
