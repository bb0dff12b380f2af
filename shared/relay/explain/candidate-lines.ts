/** What a story says of one candidate. Secrets are numbers: their references are nobody's business. */
import type { Candidate } from '../call/candidate.ts';
import type { ChatCall } from '../call/chat-call.ts';
import type { DispatchStory, PassedOver, TriedCandidate } from '../call/dispatch-report.ts';
import { codeMax, name } from './line-words.ts';

type Line = Record<string, unknown>;

/** Times in milliseconds from the request's arrival; `ms`: how long it took to fail, or to its first content. */
export function triedLine(one: TriedCandidate, { startedMs, candidates }: ChatCall): Line {
  const { candidate, outcome, contentMs, endedMs, standing, forms, attempt, vendorCode } = one;
  const until = contentMs ?? endedMs;
  return {
    channel: name(candidate.channel.id),
    secret: secretOf(candidate, candidates),
    outcome: name(outcome, codeMax),
    status: attempt.report().upstreamStatus,
    code: name(vendorCode, codeMax),
    at: one.startedMs - startedMs,
    ms: until === undefined ? undefined : until - one.startedMs,
    broke_at: contentMs !== undefined && endedMs !== undefined ? endedMs - startedMs : undefined,
    stood: standing?.is,
    forms,
  };
}

/** `seconds`: how long it still rested when the call began. */
export const passedLine = (
  { candidate, is, kind, untilMs }: PassedOver,
  startedMs: number,
  { candidates }: ChatCall,
): Line => ({
  channel: name(candidate.channel.id),
  secret: secretOf(candidate, candidates),
  why: is,
  kind,
  seconds: untilMs === undefined ? undefined : Math.ceil((untilMs - startedMs) / 1000),
});

/** Which of its channel's secrets, as a number from 1. Undefined: there is no other. */
function secretOf(candidate: Candidate, candidates: readonly Candidate[]): number | undefined {
  const own = candidates.filter(
    ({ channel, model }) => channel.id === candidate.channel.id && model === candidate.model,
  );
  return own.length > 1 ? own.indexOf(candidate) + 1 : undefined;
}

const passedOverMax = 4;

/** Those that something is known against, and how many more were not tried. */
export function passedOverOf({ tried, uncarried, order }: DispatchStory): {
  shown: PassedOver[];
  more: number;
} {
  const known = new Set([...tried.map((one) => one.candidate), ...uncarried]);
  const left = order?.candidates.filter((candidate) => !known.has(candidate)) ?? [];
  const against = left.flatMap((candidate) => order?.passedOver(candidate) ?? []);
  const shown = [
    ...uncarried.map((candidate): PassedOver => ({ candidate, is: 'cannot_carry' })),
    ...against.filter(({ is }) => is !== 'not_needed'),
  ].slice(0, passedOverMax);
  return { shown, more: uncarried.length + left.length - shown.length };
}
