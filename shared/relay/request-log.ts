/** The one line of each call, built at its end from the results of the stages. Must never hold a prompt, an answer or a secret. */
import { formatFlags } from '../billing/usage.ts';
import { partCountsOf } from '../wire/chat-response.ts';
import { standardTiers } from '../wire/service-tier.ts';
import type { SentFacts } from '../endpoints/endpoint.ts';
import { listDroppedNames } from './answer/answer.ts';
import type { Measure } from './answer/meter.ts';
import type { ChatCall, DispatchReport } from './call/call.ts';
import type { Refusal } from './http/refusal.ts';
import type { ExplainedCall, RefusalTally } from './explain.ts';
import { slowMs, type RequestLog } from './ports/telemetry.ts';
import type { BillReport } from './money/bill.ts';
import type { ChatPorts } from './ports/chat-ports.ts';

const loadExplain = () => import('./explain.ts');

interface AnswerFacts {
  call: ChatCall;
  report: DispatchReport;
  billed: BillReport;
  /** `implausible`: the channel's counts need an operator. */
  measure: Measure & { implausible: boolean };
  ending: { status: number; end: string; refusal: Refusal | undefined; durationMs: number };
}

function buildAnswerLine({ call, report, billed, measure, ending }: AnswerFacts): RequestLog {
  const { status, end, refusal, durationMs } = ending;
  const counted = measure.anyContent || !refusal;
  const { prompt_tokens, completion_tokens, prompt_tokens_details } = measure.usage;
  const tokens = { prompt_tokens, completion_tokens, ...partCountsOf(prompt_tokens_details) };
  const { serviceTier = 'default', reportedTier = serviceTier } = report.sent;
  const isOther = reportedTier !== serviceTier && !standardTiers.has(reportedTier);
  return {
    request_id: call.identity.requestId,
    endpoint: call.endpoint,
    status,
    end,
    duration_ms: durationMs,
    ...buildRefusalFields(refusal),
    key_hint: call.key.hint,
    account: call.key.account,
    model: call.model.base,
    alias: call.alias?.name,
    ...call.attribution,
    dropped_tools: call.droppedTools || undefined,
    dropped: listDroppedNames(report.sent),
    dropped_count: new Set(report.sent.dropped).size || undefined,
    input_transformations: reasonsOf(report.sent),
    ...(report.search !== undefined && { search: report.search }),
    channel: report.tried.at(-1)?.channel,
    attempts: report.tried.length > 0 ? report.tried : undefined,
    retries: Math.max(0, report.tried.length - 1) || undefined,
    upstream_status: report.upstreamStatus,
    first_content_ms: report.firstContentMs,
    ...(counted && { ...tokens, ...buildUsageFields(measure, report.usage) }),
    ...(call.limitedBy && {
      limited_by: call.limitedBy,
      max_tokens: call.outputTokensLimit,
      limit_reached: measure.atLimit,
    }),
    service_tier: standardTiers.has(serviceTier) ? undefined : serviceTier,
    reported_tier: isOther ? reportedTier : undefined,
    charge: billed.charge,
    plan_slot: billed.planSlot,
  };
}

/** The line shows both the upstream's counts and the charged ones. */
const buildUsageFields = (
  { flags, implausible }: AnswerFacts['measure'],
  reported: DispatchReport['usage'],
): Partial<RequestLog> =>
  flags.length === 0
    ? { usage_estimated: false }
    : {
        usage_estimated: true,
        usage_flag: formatFlags(flags),
        usage_implausible: implausible || undefined,
        reported_input: reported?.input,
        reported_output: reported?.output,
      };

/** Counts the upstream's changes of the input by reason, if it reports any. */
function reasonsOf({ inputTransformations = [] }: SentFacts): Record<string, number> | undefined {
  if (inputTransformations.length === 0) return undefined;
  const byReason = Map.groupBy(inputTransformations, ({ type, reason }) => reason ?? type ?? 'unknown');
  return Object.fromEntries([...byReason].map(([reason, each]) => [reason, each.length]));
}

/** Writes the one line of each call, and counts what accounts were refused. */
export class RequestLogger {
  readonly #ports: Pick<ChatPorts, 'clock' | 'log' | 'refusals'>;
  #tally: RefusalTally | undefined;

  constructor(ports: Pick<ChatPorts, 'clock' | 'log' | 'refusals'>) {
    this.#ports = ports;
  }

  /** Never rejects. */
  async logAnswer(facts: AnswerFacts & ExplainedCall): Promise<void> {
    const { call, report, ending } = facts;
    const { log } = this.#ports;
    const { requestId } = call.identity;
    let line = buildAnswerLine(facts);
    const isSlow = (report.firstContentMs ?? 0) > slowMs;
    if (ending.end !== 'completed' || report.tried.length > 1 || isSlow) {
      try {
        line = { ...line, ...(await loadExplain()).explainCall(facts) };
      } catch (error) {
        log.fault(requestId, error);
      }
    }
    log.request(line);
    await this.#count(requestId, call.key.account, ending.refusal);
  }

  /** A call that was refused before any upstream was asked. Never rejects. */
  async logRefusal(facts: RefusedFacts): Promise<void> {
    this.#ports.log.request(buildRefusalLine(facts));
    await this.#count(facts.requestId, facts.key?.account, facts.refusal);
  }

  /** Also writes what calls before this one left. What cannot be written is lost: these are counts for people, not money. */
  async #count(requestId: string, account: string | undefined, refusal: Refusal | undefined): Promise<void> {
    if (!this.#tally && (account === undefined || !refusal)) return;
    const { clock, log, refusals } = this.#ports;
    try {
      const { RefusalTally } = await loadExplain();
      const tally = (this.#tally ??= new RefusalTally());
      if (account !== undefined && refusal) tally.count(account, refusal, clock.now());
      const due = tally.takeDue(clock.now());
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
  /** As the client saw it. */
  status: number;
  key: { hint?: string | undefined; account: string } | undefined;
  model: string | undefined;
  attribution?: ChatCall['attribution'] | undefined;
  droppedTools: number | undefined;
  durationMs: number;
  refusal: Refusal;
}

function buildRefusalLine(facts: RefusedFacts): RequestLog {
  const { refusal, key } = facts;
  return {
    request_id: facts.requestId,
    endpoint: facts.endpoint,
    status: facts.status,
    end: 'refused',
    duration_ms: facts.durationMs,
    ...buildRefusalFields(refusal),
    key_hint: key?.hint,
    account: key?.account,
    model: facts.model,
    ...facts.attribution,
    dropped_tools: facts.droppedTools || undefined,
  };
}

function buildRefusalFields(refusal: Refusal | undefined): Partial<RequestLog> {
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
