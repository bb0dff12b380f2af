/**
 * The tokens of an input, for clients that ask before they send it: the upstream's own count where the candidate that would
 * answer has one, else the relay's estimate, which a header says. It is read and chosen for as a call, of an account that could
 * make one. Nothing is charged or reserved, no row of the ledger is written, and no candidate's health is touched. Loaded by the
 * first such request.
 */
import { sumReserved } from '../billing/quota-item.ts';
import { endlessBalance, isRefusal, planReservation } from '../billing/reservation.ts';
import type { Counting, Endpoint } from '../endpoints/endpoint.ts';
import { CannotCarry, type AnswerReader, type CountingForm, type Dialect } from '../upstreams/dialect.ts';
import type { UpstreamEvent } from '../upstreams/body-events.ts';
import { UpstreamFailure } from '../upstreams/exchange.ts';
import { asRecord } from '../wire/json.ts';
import type { Candidate, ChatCall } from './call/call.ts';
import { mayHaveStates, type CheckedCall, type ReadCall, type RefusedCall } from './read-call.ts';
import { callTo } from './call/serving-channels.ts';
import { AskAgain, Attempt } from './dispatch/attempt.ts';
import { orderCandidates } from './dispatch/candidate-order.ts';
import { findLearnedVariant } from './dispatch/dispatch.ts';
import type { HealthRecorder } from './health/health-recorder.ts';
import type { RelayResponse } from './http/http.ts';
import { respondJson, Refusal } from './http/refusal.ts';
import { within } from './retry.ts';
import type { Admission } from './money/admission.ts';
import { priceOnceProven } from './money/call-costs.ts';
import type { ReservationRequest } from './money/open-reservation.ts';
import type { Reservations } from './money/reservations.ts';
import { readSums } from './money/shards.ts';
import { countUnbilled, runWithinKeyPermits, runWithinPermits } from './money/unbilled-limits.ts';
import type { ChatPorts } from './ports/chat-ports.ts';

/** How long a client waits for the upstream's count. */
const countMs = 3_000;
/** Limit for keys without an `rpm` of their own: money bounds calls, but not counts. */
const countsOfMinute = 60;

interface CountDeps {
  ports: ChatPorts;
  endpoint: Endpoint;
  health: HealthRecorder;
  reservations: Pick<Reservations, 'createRefusal'>;
  admission: Admission;
}

/**
 * Throws a Refusal, an InvalidRequest or StoreUnavailable.
 * @param whole reads what the call goes on from
 */
export async function countTokens(
  { ports, endpoint, health, reservations, admission }: CountDeps,
  counting: Counting,
  { call: { key, identity } }: CheckedCall,
  whole: () => Promise<ReadCall>,
): Promise<{ answered: RelayResponse } | RefusedCall> {
  const { requestId } = identity;
  await countUnbilled(ports, { key: { ...key, rpm: key.rpm ?? countsOfMinute } });
  const read = await whole();
  if ('refusal' in read) return { refusal: read.refusal };
  const { checked } = read;
  // A count makes no search, and needs no money for one.
  const call = { ...checked.call, tariff: { ...checked.call.tariff, search: undefined } };
  const billing = { ...ports, inflate: checked.source.facts.work.limitInflate(ports.inflate) };
  const { costs, request } = await priceOnceProven(billing, call, () => admission.prove(call));
  const admittedCount = { requestId, call, request, reservations };
  const counted = await countWithinLimits(ports, admittedCount, async () =>
    askUpstream(ports, health, await openSentStates(ports, { ...checked, call })),
  );
  if (counted instanceof Refusal) return { refusal: { reason: 'money', refusal: counted } };
  const { candidate, reason, status } = counted;
  const cost = costs.find(({ model }) => model === candidate?.model) ?? costs[0];
  const tokens = counted.tokens ?? cost.estimate.inputTokens;
  ports.log.request({
    request_id: requestId,
    endpoint: endpoint.name,
    status: 200,
    end: 'counted',
    duration_ms: ports.clock.now() - call.startedMs,
    reason,
    key_hint: key.hint,
    account: key.account,
    model: cost.model,
    alias: call.alias?.name,
    ...call.attribution,
    channel: candidate?.channel.id,
    upstream_status: status,
    prompt_tokens: tokens,
  });
  const response = respondJson(requestId, counting.answer(tokens));
  const estimated = counted.tokens === undefined && { 'x-relay-estimated': 'true' };
  const headers = { ...response.headers, ...endpoint.answerHeaders?.(requestId), ...estimated };
  return { answered: { ...response, headers } };
}

/** The vendor's own earlier output counts too. Throws InvalidRequest for a damaged encrypted state. */
async function openSentStates(ports: ChatPorts, checked: CheckedCall): Promise<ChatCall> {
  if (!mayHaveStates(checked)) return checked.call;
  const { statesOf } = await import('./state/turn-states.ts');
  const { states, dropped } = statesOf(ports, checked);
  return { ...checked.call, states, stateDropped: dropped };
}

interface AdmittedCount {
  requestId: string;
  call: Pick<ChatCall, 'key'>;
  /** Missing if nothing limits the call and it costs nothing. */
  request: ReservationRequest | undefined;
  reservations: CountDeps['reservations'];
}

/**
 * Counts while the account could make the call, and while no more counts of key and account are under way than they may have
 * calls: both count by the minute, as reads of what is stored do. Any balance will do, since a count takes none.
 */
async function countWithinLimits<T>(
  ports: ChatPorts,
  { requestId, call, request, reservations }: AdmittedCount,
  count: () => Promise<T>,
): Promise<T | Refusal> {
  if (!request) return count();
  const { account, need } = request;
  const whole = await readSums(ports, request, true);
  const hasMoney = whole.available + sumReserved(whole) > 0n;
  const plan = planReservation(need, hasMoney ? { ...whole, available: endlessBalance } : whole);
  if (isRefusal(plan)) return reservations.createRefusal(request, plan, whole);
  const slots = {
    of: `account:${account}`,
    most: need.accountConcurrency,
    requestId,
    createRefusal: () => request.createRefusal({ reason: 'open_entries' }, whole),
  };
  return runWithinKeyPermits(ports, { ...call, requestId }, () => runWithinPermits(ports, slots, count));
}

interface UpstreamCount {
  tokens?: number | undefined;
  candidate?: Candidate;
  /** Why none came. */
  reason?: string;
  status?: number | undefined;
}

/** Asks the candidate that would be asked first, once. Throws a Refusal where the upstream refuses the request itself. */
async function askUpstream(ports: ChatPorts, health: HealthRecorder, call: ChatCall): Promise<UpstreamCount> {
  const candidate = (await orderCandidates(call, health)).take()?.candidate;
  if (!candidate) return { reason: 'all_channels_cooling' };
  const over = new AbortController();
  // Counting produces no answer, so limits on the answer must not change the request.
  const unlimited = { outputTokensLimit: Number.MAX_SAFE_INTEGER, signal: over.signal };
  const asked = { ...callTo(call, candidate.model), ...unlimited };
  const variant = findLearnedVariant(ports, candidate, call);
  const attempt = new Attempt(ports, { candidate, call: asked, variant, speaking: createCountingDialect });
  const work = attempt.chunks.next().then(() => undefined);
  try {
    const late = 'upstream_timeout';
    const reason = await within(ports.clock, countMs, { work, late, signal: call.signal });
    const { usage, upstreamStatus } = attempt.report();
    return { candidate, tokens: usage?.input, status: upstreamStatus, ...(reason && { reason }) };
  } catch (error) {
    return { candidate, reason: explainMissingCount(error), status: attempt.report().upstreamStatus };
  } finally {
    over.abort('over');
  }
}

function explainMissingCount(error: unknown): string {
  if (error instanceof UpstreamFailure) return error.reason;
  if (error instanceof CannotCarry) return 'no_count';
  // It wants the call in another form, or has no such path.
  const isUnasked = error instanceof AskAgain || (error instanceof Refusal && error.status === 404);
  if (isUnasked) return 'upstream_refused';
  throw error;
}

/** A dialect as it asks for a count. Throws CannotCarry for one that does not. */
function createCountingDialect(dialect: Dialect): Dialect {
  const { counting } = dialect;
  if (!counting) throw new CannotCarry('model', 'The upstream of this model cannot count tokens.');
  return {
    ...dialect,
    path: counting.path,
    body(call, settings) {
      const sent = dialect.body(call, settings);
      return { ...sent, body: counting.body(sent.body) };
    },
    Reader: readerOf(counting),
  };
}

const readerOf = (counting: CountingForm): Dialect['Reader'] =>
  class implements AnswerReader {
    readonly done = false;
    readonly finishedChoices = 0;
    #count: number | undefined;

    push(event: UpstreamEvent): [] {
      const count = event.kind === 'value' ? counting.tokens(asRecord(event.value)) : undefined;
      if (Number.isSafeInteger(count) && Number(count) >= 0) this.#count = Number(count);
      return [];
    }

    end(): [] {
      if (this.#count === undefined) throw new UpstreamFailure('junk');
      return [];
    }

    report() {
      return { usage: { input: this.#count }, state: undefined, serviceTier: undefined };
    }
  };
