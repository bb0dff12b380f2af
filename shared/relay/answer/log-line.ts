/**
 * Builds a request's log line at its end from the results of the stages. Must never hold a prompt, an answer
 * or a secret.
 */
import { partCountsOf } from '../../wire/chat-response.ts';
import { flagText } from '../../billing/usage.ts';
import type { ChatCall, DispatchReport } from '../call/call.ts';
import type { ExplainedCall, RefusalTally } from '../explain.ts';
import type { Refusal } from '../http/refusal.ts';
import type { BillReport } from '../money/bill.ts';
import type { Clock } from '../ports/host.ts';
import type { RefusalCounts } from '../ports/money-stores.ts';
import { slowMs, type Log, type RequestLog } from '../ports/telemetry.ts';
import { droppedNames, type Measure } from './answer.ts';

interface AnswerFacts {
  call: ChatCall;
  report: DispatchReport;
  billed: BillReport;
  /** `implausible`: the channel's counts need an operator. */
  measure: Measure & { implausible: boolean };
  ending: { status: number; end: string; refusal: Refusal | undefined; durationMs: number };
}

/** The log line of a dispatched call. */
function answerLine({ call, report, billed, measure, ending }: AnswerFacts): RequestLog {
  const { status, end, refusal, durationMs } = ending;
  const counted = measure.anyContent || !refusal;
  const { prompt_tokens, completion_tokens, prompt_tokens_details } = measure.usage;
  const tokens = { prompt_tokens, completion_tokens, ...partCountsOf(prompt_tokens_details) };
  return {
    request_id: call.identity.requestId,
    endpoint: call.endpoint,
    status,
    end,
    duration_ms: durationMs,
    ...refusalFields(refusal),
    key_hint: call.key.hint,
    account: call.key.account,
    model: call.model.base,
    alias: call.alias?.name,
    dropped_tools: call.droppedTools || undefined,
    dropped: droppedNames(report.sent),
    ...(report.search !== undefined && { search: report.search }),
    channel: report.tried.at(-1)?.channel,
    attempts: report.tried.length > 0 ? report.tried : undefined,
    retries: Math.max(0, report.tried.length - 1) || undefined,
    upstream_status: report.upstreamStatus,
    first_content_ms: report.firstContentMs,
    ...(counted && { ...tokens, ...usageFields(measure, report) }),
    ...limitFields(call, measure),
    charge: billed.charge,
    plan_slot: billed.planSlot,
  };
}

/** What the upstream reported is named beside what was charged, so that one line shows both. */
function usageFields(
  { flags, implausible }: AnswerFacts['measure'],
  { usage }: DispatchReport,
): Partial<RequestLog> {
  if (flags.length === 0) return { usage_estimated: false };
  return {
    usage_estimated: true,
    usage_flag: flagText(flags),
    usage_implausible: implausible || undefined,
    reported_input: usage?.input,
    reported_output: usage?.output,
  };
}
/** The limit that balance or budget lowered. */
const limitFields = (
  { limitedBy, outputTokensLimit }: ChatCall,
  { atLimit }: Measure,
): Pick<RequestLog, 'limited_by' | 'max_tokens' | 'limit_reached'> =>
  limitedBy ? { limited_by: limitedBy, max_tokens: outputTokensLimit, limit_reached: atLimit } : {};

/** What went wrong is loaded by the first call that does. */
export interface LogPorts {
  clock: Clock;
  log: Log;
  refusals: RefusalCounts;
}

/** Writes the one line of each call, and counts what accounts were refused. One for each function. */
export class RequestLogger {
  readonly #ports: LogPorts;
  #tally: RefusalTally | undefined;

  constructor(ports: LogPorts) {
    this.#ports = ports;
  }

  /** Never rejects. */
  async answered(facts: AnswerFacts & ExplainedCall): Promise<void> {
    const { call, report, ending } = facts;
    const line = answerLine(facts);
    const isSlow = (report.firstContentMs ?? 0) > slowMs;
    if (ending.end === 'completed' && report.tried.length < 2 && !isSlow) this.#ports.log.request(line);
    else this.#ports.log.request({ ...line, ...(await this.#explained(facts)) });
    await this.#count(call.identity.requestId, call.key.account, ending.refusal);
  }

  /** A call that was refused before any upstream was asked. Never rejects. */
  async refused(facts: RefusedFacts): Promise<void> {
    this.#ports.log.request(refusalLine(facts));
    await this.#count(facts.requestId, facts.key?.account, facts.refusal);
  }

  async #explained(facts: ExplainedCall): Promise<Partial<RequestLog>> {
    try {
      return (await import('../explain.ts')).explained(facts);
    } catch (error) {
      this.#ports.log.fault(facts.call.identity.requestId, error);
      return {};
    }
  }

  /** Also writes what calls before this one left. What cannot be written is lost: these are counts for people, not money. */
  async #count(requestId: string, account: string | undefined, refusal: Refusal | undefined): Promise<void> {
    if (!this.#tally && (account === undefined || !refusal)) return;
    const { clock, log, refusals } = this.#ports;
    try {
      const { RefusalTally: Tally } = await import('../explain.ts');
      const tally = (this.#tally ??= new Tally());
      if (account !== undefined && refusal) tally.count(account, refusal, clock.now());
      const due = tally.due(clock.now());
      if (due.length === 0) return;
      // In a later turn the host has written the last byte of a refusal, which it gets only now.
      await clock.sleep(0);
      await Promise.all(due.map((one) => refusals.add(one)));
    } catch (error) {
      log.fault(requestId, error);
    }
  }
}

/** Known facts about a refused request. Facts of checks after the refusal are missing. */
export interface RefusedFacts {
  requestId: string;
  endpoint: string;
  key: { hint?: string | undefined; account: string } | undefined;
  model: string | undefined;
  droppedTools: number | undefined;
  durationMs: number;
  refusal: Refusal;
}

/** The log line of a request that was refused before any call to an upstream. */
function refusalLine(facts: RefusedFacts): RequestLog {
  const { refusal, key } = facts;
  return {
    request_id: facts.requestId,
    endpoint: facts.endpoint,
    status: refusal.status,
    end: 'refused',
    duration_ms: facts.durationMs,
    ...refusalFields(refusal),
    key_hint: key?.hint,
    account: key?.account,
    model: facts.model,
    dropped_tools: facts.droppedTools || undefined,
  };
}

function refusalFields(refusal: Refusal | undefined): Partial<RequestLog> {
  if (!refusal) return {};
  const { body, reason, facts, headers } = refusal;
  const seconds = Number(headers['retry-after'] ?? NaN);
  return {
    code: body.error.code,
    reason,
    facts,
    param: body.error.param != null || undefined,
    retry_after: Number.isFinite(seconds) ? seconds : undefined,
  };
}
