/**
 * Details in the log line of a call that went wrong: tried and skipped candidates, the reservation, what the
 * client got. Also counts failed calls of an account for its customer. Loaded by the first such call. Must never
 * contain text of a client or an upstream, nor a secret's reference.
 */
import { formatYuan, type NanoYuan } from '../billing/money.ts';
import { findPublishedWord } from '../upstreams/vocabulary.ts';
import { utcHour } from '../wire/iso-time.ts';
import type {
  Candidate,
  ChatCall,
  DispatchReport,
  DispatchHistory,
  PassedOver,
  TriedCandidate,
} from './call/call.ts';
import { isRefusalCode, type Refusal } from './http/refusal.ts';
import type { HourOfRefusals } from './ports/money-stores.ts';
import type { PassedOverLine, RequestLog, TriedLine } from './ports/telemetry.ts';

export interface ExplainedCall {
  call: ChatCall;
  report: DispatchReport;
  reserved: { entry: { amount: NanoYuan; slot: string } } | undefined;
  /** Length (UTF-16 code units) and first time of what the client was sent, or what was stored of a background run. */
  heard: { length: number; firstMs: number | undefined };
  ending: { refusal: Refusal | undefined };
}

const passedOverMax = 4;

export function explainCall({ call, report, reserved, heard, ending }: ExplainedCall): Partial<RequestLog> {
  const history = report.history?.() ?? { tried: [], uncarried: [], order: undefined };
  const { shown, more } = listPassedOver(history);
  const { startedMs } = call;
  return {
    // An upstream may have put its own words where a code belongs.
    ...(ending.refusal && { code: codeOf(ending.refusal) }),
    attempts: history.tried.map((one) => describeTried(one, call)),
    passed_over: shown.length > 0 ? shown.map((one) => describePassed(one, call)) : undefined,
    more_candidates: more || undefined,
    reserved: reserved && {
      yuan: formatYuan(reserved.entry.amount),
      plan_slot: reserved.entry.slot || undefined,
      max_tokens: call.outputTokensLimit,
      limited_by: call.limitedBy,
    },
    sent: Object.entries(call.request).flatMap(([field, value]) => (value === undefined ? [] : field)),
    first_text_ms: heard.firstMs === undefined ? undefined : heard.firstMs - startedMs,
    length: heard.length || undefined,
  };
}

/** Times from the request's arrival. `ms`: how long it took to fail, or to its first content. */
function describeTried(one: TriedCandidate, { startedMs, candidates }: ChatCall): TriedLine {
  const { candidate, outcome, contentMs, endedMs, health, forms, attempt, vendorCode } = one;
  const until = contentMs ?? endedMs;
  return {
    channel: candidate.channel.id,
    secret: secretOf(candidate, candidates),
    outcome,
    status: attempt.report().upstreamStatus,
    code: vendorCode,
    at: one.startedMs - startedMs,
    ms: until === undefined ? undefined : until - one.startedMs,
    broke_at: contentMs !== undefined && endedMs !== undefined ? endedMs - startedMs : undefined,
    stood: health?.is,
    forms,
  };
}

const describePassed = (
  { candidate, is, kind, untilMs }: PassedOver,
  { startedMs, candidates }: ChatCall,
): PassedOverLine => ({
  channel: candidate.channel.id,
  secret: secretOf(candidate, candidates),
  why: is,
  kind,
  seconds: untilMs === undefined ? undefined : Math.ceil((untilMs - startedMs) / 1000),
});

/** The position of its secret among the channel's, from 1, if there are several. */
function secretOf(candidate: Candidate, candidates: readonly Candidate[]): number | undefined {
  const own = candidates.filter(
    ({ channel, model }) => channel.id === candidate.channel.id && model === candidate.model,
  );
  return own.length > 1 ? own.indexOf(candidate) + 1 : undefined;
}

/** Lists candidates that were skipped for a known reason, and counts the others that were not tried. */
function listPassedOver({ tried, uncarried, order }: DispatchHistory): { shown: PassedOver[]; more: number } {
  const known = new Set([...tried.map((one) => one.candidate), ...uncarried]);
  const left = order?.candidates.filter((candidate) => !known.has(candidate)) ?? [];
  const against = left.flatMap((candidate) => order?.passedOver(candidate) ?? []);
  const shown = [
    ...uncarried.map((candidate): PassedOver => ({ candidate, is: 'cannot_carry' })),
    ...against.filter(({ is }) => is !== 'not_needed'),
  ].slice(0, passedOverMax);
  return { shown, more: uncarried.length + left.length - shown.length };
}

/** A flood of refused calls is one write a minute and account. */
const writePauseMs = 60_000;

/** Counts what calls of accounts ended with, by hour and code, until it is written. */
export class RefusalTally {
  readonly #accounts = new Map<string, { writtenMs: number; hours: Map<string, Record<string, number>> }>();

  count(account: string, refusal: Refusal, nowMs: number): void {
    const kept = this.#accounts.get(account) ?? { writtenMs: -Infinity, hours: new Map() };
    this.#accounts.set(account, kept);
    const hour = utcHour(nowMs);
    const counts = kept.hours.get(hour) ?? {};
    const code = codeOf(refusal);
    kept.hours.set(hour, { ...counts, [code]: (counts[code] ?? 0) + 1 });
  }

  /** Takes what may be written now. */
  takeDue(nowMs: number): HourOfRefusals[] {
    const due: HourOfRefusals[] = [];
    for (const [account, kept] of this.#accounts) {
      if (nowMs - kept.writtenMs < writePauseMs) continue;
      for (const [hour, counts] of kept.hours) {
        due.push({ account, hour, counts });
        kept.hours.delete(hour);
        kept.writtenMs = nowMs;
      }
    }
    return due;
  }
}

/** The word of an error, if it is one of the relay's or of those that vendors publish. */
function codeOf({ status, body }: Refusal): string {
  const { code } = body.error;
  if (isRefusalCode(code) || ownCodes.has(code)) return code;
  const word = findPublishedWord({ code });
  return word && word !== 'other' ? word : status < 500 ? 'invalid_request' : 'other';
}

/** Codes of requests that the relay itself finds wrong. */
const ownCodes: ReadonlySet<string> = new Set([
  'invalid_type',
  'invalid_value',
  'missing_required_parameter',
  'unsupported_parameter',
  'unsupported_content',
  'invalid_idempotency_key',
]);
