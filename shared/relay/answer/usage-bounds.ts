/** What the counts of an answer are compared with, from the call as it was sent to its upstream. */
import type { UsageBounds } from '../../billing/usage/checked-usage.ts';
import { inputBelow, inputMax } from '../../billing/usage/estimates.ts';
import { ruleLimits } from '../../billing/price-rule.ts';
import type { ChatRequest } from '../../wire/chat-request.ts';
import type { ChatCall } from '../call/chat-call.ts';
import type { DispatchReport } from '../call/dispatch-report.ts';

/** More than any model writes in one answer; holds where neither request nor row says a limit. */
const outputTokensEver = 512 * 1024;
/** Vendors stop some tokens after the limit and count the end marks. */
const outputSlack = 1.05;
const outputSlackTokens = 64;
/** What tools that run at the upstream may read. */
const hostedToolsTokens = 200_000;

export function usageBounds(
  call: ChatCall,
  { request, channel, sent }: DispatchReport,
  inputUnbiased: (request: ChatRequest) => number,
): Omit<UsageBounds, 'streamed' | 'isCut'> {
  const asked = { request, unknown: call.unknown };
  const params = channel?.params;
  const { maxOutputTokens = Infinity } = ruleLimits(call.snapshot.charges, call.model.base, call.startedMs);
  const known = Math.min(params?.max_output_tokens ?? Infinity, maxOutputTokens);
  const limit = Math.min(sent.outputTokensMax ?? outputTokensEver, known);
  const hosted = (params?.allow.length ?? 0) > 0 ? hostedToolsTokens : 0;
  // States of earlier turns go up too, though no client sent them.
  const putBack = [...call.states.values()];
  const carried = call.items && [...call.items.after.values(), ...call.items.instead.values()];
  return {
    inputBelow: () => inputBelow(asked),
    inputUnbiased: () => inputUnbiased(request),
    // What multiplies was allowed by the row, and its limits are the vendor's own.
    inputMax: () =>
      sent.isMultiplied
        ? Infinity
        : inputMax({ request, unknown: { ...call.unknown, putBack, carried } }) + hosted,
    outputMax: sent.isMultiplied ? Infinity : limit * (request.n ?? 1) * outputSlack + outputSlackTokens,
  };
}
