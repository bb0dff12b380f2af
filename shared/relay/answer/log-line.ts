/**
 * Builds a request's log line at its end from the results of the stages. Must never hold a prompt, an answer
 * or a secret.
 */
import { cacheCounts } from '../../billing/price.ts';
import { flagText } from '../../billing/usage.ts';
import type { ChatCall, DispatchReport } from '../call/call.ts';
import type { StoryPorts, StoryTeller, AnsweredFacts } from '../explain.ts';
import type { Refusal } from '../http/refusal.ts';
import type { BillReport } from '../money/bill.ts';
import type { RequestLog } from '../ports/telemetry.ts';
import type { Measure } from './meter.ts';
import type { SentFacts } from '../../endpoints/endpoint.ts';

interface AnswerFacts {
  call: ChatCall;
  report: DispatchReport;
  billed: BillReport;
  /** `implausible`: the channel's counts need an operator. */
  measure: Measure & { implausible: boolean };
  ending: { status: number; end: string; refusal: Refusal | undefined; durationMs: number };
}

/** The log line of a dispatched call. */
export function answerLine({ call, report, billed, measure, ending }: AnswerFacts): RequestLog {
  const { status, end, refusal, durationMs } = ending;
  const counted = measure.anyContent || !refusal;
  const { prompt_tokens, completion_tokens, prompt_tokens_details } = measure.usage;
  const tokens = { prompt_tokens, completion_tokens, ...cacheCounts(prompt_tokens_details) };
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

/** Sees to the stories of calls that need one. One for each function; what tells them is loaded by the first. */
export class Stories {
  readonly #ports: StoryPorts;
  #teller: StoryTeller | undefined;

  constructor(ports: StoryPorts) {
    this.#ports = ports;
  }

  /** To be called when the client has its answer. Never rejects. */
  async answered(facts: AnsweredFacts): Promise<void> {
    const { report, ending } = facts;
    const isPlain = ending.end === 'completed' && report.tried.length < 2 && report.usualMs === undefined;
    if (!isPlain) await this.#run(facts.call.identity.requestId, (teller) => teller.answered(facts));
    else if (this.#teller?.waits) await this.#run(facts.call.identity.requestId, (teller) => teller.write());
  }

  /** Never rejects. */
  refused(facts: RefusedFacts): Promise<void> {
    return this.#run(facts.requestId, (teller) => teller.refused(facts));
  }

  async #run(requestId: string, work: (teller: StoryTeller) => Promise<void>): Promise<void> {
    try {
      const { StoryTeller: Teller } = await import('../explain.ts');
      await work((this.#teller ??= new Teller(this.#ports)));
    } catch (error) {
      this.#ports.log.fault(requestId, error);
    }
  }
}

/** Known facts about a refused request. Facts of checks after the refusal are missing. */
interface RefusedFacts {
  requestId: string;
  endpoint: string;
  key: { hint?: string | undefined; account: string } | undefined;
  model: string | undefined;
  droppedTools: number | undefined;
  durationMs: number;
  refusal: Refusal;
}

/** The log line of a request that was refused before any call to an upstream. */
export function refusalLine(facts: RefusedFacts): RequestLog {
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

const refusalFields = (refusal: Refusal | undefined): Pick<RequestLog, 'code' | 'reason'> =>
  refusal ? { code: refusal.body.error.code, reason: refusal.reason } : {};

// Says in headers and log what became of a call's fields. Clients choose names of fields, so names are checked.

const namesMax = 20;
const name = /^[\w.[\]-]{1,64}$/;

/** The fields that were not sent, each once. Undefined: all were sent. */
export function droppedNames({ dropped }: Pick<SentFacts, 'dropped'>): string[] | undefined {
  const names = [...new Set(dropped)].filter((field) => name.test(field)).slice(0, namesMax);
  return names.length > 0 ? names : undefined;
}

export function sentHeaders(sent: SentFacts): Record<string, string> {
  const { effort = '', toolChoice = '' } = sent;
  const dropped = droppedNames(sent);
  return {
    ...(dropped && { 'x-relay-dropped': dropped.join(', ') }),
    ...(name.test(effort) && { 'x-relay-effort': effort }),
    ...(name.test(toolChoice) && { 'x-relay-tool-choice': toolChoice }),
  };
}
