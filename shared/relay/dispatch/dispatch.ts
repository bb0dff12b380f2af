/**
 * Tries the candidates of a call until one answers. Nothing of an answer is
 * passed on before it has content or is complete, so another candidate can take over; after a later
 * failure the reader decides whether it can begin again. Health is written concurrently and must never delay the answer.
 */
import { opened } from '../../stream/machine.ts';
import { type ChatChunk, hasContent } from '../../wire/chat-response.ts';
import { Attempt, type Tried } from './attempt.ts';
import type { ChatCall, DispatchedCall, DispatchReport, Candidate, SearchOutcome } from '../call/call.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
import type { HealthRecorder } from '../health/health-recorder.ts';
import { callTo } from '../call/serving-channels.ts';
import {
  CandidateOrder,
  type Rank,
  scoreOf,
  isOrigin,
  newestOrigin,
  AskAgain,
  usual,
  type LimitRefusal,
  type Variant,
} from './candidates.ts';
import type { ChannelType } from '../../upstreams/channel-type.ts';
import { returnedFields, type Quirks } from '../../upstreams/quirks.ts';
import { CannotCarry } from '../../upstreams/dialect.ts';
import { channelTypes } from '../../upstreams/types/channel-types.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import { refusedLimit, type Fact, type LearnedFact, type ServedModel } from '../../config/learned-fact.ts';
import { Refusal } from '../http/refusal.ts';
import type { SearchedRequest } from '../search.ts';
import { UpstreamFailure } from '../../upstreams/exchange.ts';

const attemptsMax = 3;
/** How often one candidate is called in all, whatever it refuses. */
const formsMax = 3;
/** How long the form that a model wants is remembered. */
const learnedMs = 60 * 60 * 1000;

/** Rounded up to a power of two: callers choose limits, and must not fill the item with facts. */
function limitFact({ tokens, overContext }: LimitRefusal): Fact {
  const rounded = 2 ** Math.ceil(Math.log2(tokens));
  return overContext ? `limit_over_context:${rounded}` : `refuses_limit:${rounded}`;
}

/** Whether two attempts of one candidate send the same: a form that this call cannot take would be refused again. */
async function sendTheSame(one: Attempt, other: Attempt): Promise<boolean> {
  const [{ built: a }, { built: b }] = await Promise.all([one.prepare(), other.prepare()]);
  return a.request.url === b.request.url && a.request.body === b.request.body;
}

const served = ({ channel, model }: Candidate): ServedModel => ({ channel: channel.id, model });

/** What refusals taught of how a model differs from its dialect. */
function learnedQuirks(facts: readonly LearnedFact[]): Partial<Quirks> {
  const of = (kind: string): string | undefined =>
    facts.findLast(({ fact }) => fact.startsWith(`${kind}:`))?.fact.slice(kind.length + 1);
  const wantsBack = returnedFields.find((field) => field === of('wants_back'));
  const efforts = of('efforts')?.split('+');
  return { ...(wantsBack && { wantsBack }), ...(efforts && { efforts }) };
}

interface DispatchParts {
  /** As the client wrote it. */
  call: ChatCall;
  /** Its request with the results of its search. Undefined: it asked for none. */
  searched: SearchedRequest | undefined;
  health: HealthRecorder;
}

export class Dispatch implements DispatchedCall {
  readonly chunks: AsyncIterable<ChatChunk[]> = { [Symbol.asyncIterator]: () => this.#run() };
  readonly #ports: ChatPorts;
  readonly #call: ChatCall;
  readonly #health: HealthRecorder;
  readonly #tried: Tried[] = [];
  readonly #writes: Promise<void>[] = [];
  readonly #failures: UpstreamFailure[] = [];
  /** The candidates that were not tried yet. */
  #order: CandidateOrder | undefined;
  readonly #search: SearchOutcome | undefined;
  /** The call as it is sent. */
  readonly #sent: ChatCall;
  /** The answer broke off after content, and another candidate may be asked. */
  #another = false;
  #firstContentMs: number | undefined;
  readonly #uncarried: Candidate[] = [];

  constructor(ports: ChatPorts, { call, health, searched }: DispatchParts) {
    this.#ports = ports;
    this.#call = call;
    this.#health = health;
    this.#search = searched?.outcome;
    this.#sent = searched ? Object.freeze({ ...call, request: searched.request }) : call;
  }

  report(): DispatchReport {
    const reports = this.#tried.map(({ attempt }) => attempt.report());
    const last = reports.at(-1);
    return {
      request: this.#sent.request,
      search: this.#search,
      tried: this.#tried.map(({ candidate, outcome }) => ({ channel: candidate.channel.id, outcome })),
      channel: this.#tried.at(-1)?.candidate.channel,
      model: this.#tried.at(-1)?.candidate.model ?? this.#call.model.base,
      firstContentMs: this.#firstContentMs,
      story: () => ({ tried: this.#tried, uncarried: this.#uncarried, order: this.#order }),
      upstreamStatus: reports.findLast((report) => report.upstreamStatus !== undefined)?.upstreamStatus,
      usage: last?.usage,
      sent: last?.sent ?? { dropped: [] },
      state: last?.state,
      another: this.#another,
    };
  }

  async written(): Promise<void> {
    await Promise.all(this.#writes);
  }

  async *#run(): AsyncGenerator<ChatChunk[], void, undefined> {
    this.#another = false;
    const failures = this.#failures;
    const call = this.#sent;
    const order = (this.#order ??= await this.#ordered());
    const tried = this.#tried;
    let uncarried: CannotCarry | undefined;
    let tooLong: Refusal | undefined;
    while (tried.length < attemptsMax && !call.signal.aborted) {
      // The last attempt is for a model of the alias that was not asked yet, if one is left.
      if (call.alias && tried.length === attemptsMax - 1)
        order.putLast(tried.map((one) => one.candidate.model));
      const rank = order.take();
      if (!rank) break;
      const { candidate } = rank;
      let endTurn: (() => void) | undefined;
      try {
        const attempt = new Attempt(this.#ports, {
          candidate,
          call: callTo(call, candidate.model),
          variant: this.#learnedVariant(candidate),
        });
        endTurn = rank.standing ? await this.#turn(rank, attempt, order) : () => {};
        if (!endTurn) continue;
        yield* this.#try(attempt, { ...rank, endTurn }, callTo(call, candidate.model));
        return;
      } catch (error) {
        if (error instanceof CannotCarry) {
          uncarried ??= error;
          this.#uncarried.push(candidate);
        } else if (error instanceof UpstreamFailure) failures.push(error);
        else if (this.#outgrew(error)) {
          tooLong = error;
          order.leaveOut(candidate.model);
        } else throw error;
      } finally {
        endTurn?.();
      }
    }
    // A model that was not asked because it is blocked may take a prompt that the others find too long.
    if (failures.length === 0 && tooLong && !order.blocked) throw tooLong;
    if (failures.length === 0 && call.signal.aborted) failures.push(new UpstreamFailure('deadline'));
    if (failures.length === 0 && uncarried && !order.blocked)
      throw new InvalidRequest('unsupported_parameter', uncarried.param, uncarried.message);
    const { refusalOfDispatch } = await import('./refused-attempt.ts');
    const hadContent = this.#firstContentMs !== undefined;
    throw refusalOfDispatch({ failures, hadContent, blocked: order.blocked, nowMs: this.#ports.clock.now() });
  }

  /** The model finds the request too long, and the alias that was asked for has others for that. */
  #outgrew(error: unknown): error is Refusal {
    if (!(error instanceof Refusal) || this.#tried.at(-1)?.outcome !== 'refused') return false;
    return error.body.error.code === 'context_length_exceeded' && this.#call.alias?.onContextLength === true;
  }

  /**
   * Whether it is the call's turn to try a candidate with something known against it: what ends the turn. Undefined: another
   * candidate is to be taken. Throws CannotCarry.
   */
  async #turn(rank: Rank, attempt: Attempt, order: CandidateOrder): Promise<(() => void) | undefined> {
    const { candidate, standing } = rank;
    const { key, signal } = this.#call;
    if (standing?.is === 'resting') {
      const release = await this.#health.trialSlot(candidate, signal);
      if (!release) return undefined;
      // What was known may have changed while the call waited.
      const now = (await this.#health.standings(key.account))?.(candidate);
      if (now?.is !== 'blocked') return release;
      release();
      order.defer({ candidate, standing: now });
      return undefined;
    }
    if (standing?.is !== 'probe' || (await this.#claimsProbe(candidate, attempt))) return () => {};
    order.defer(rank);
    return undefined;
  }

  /** Throws CannotCarry before it claims; the attempt throws its other errors when it is read. */
  async #claimsProbe(candidate: Candidate, attempt: Attempt): Promise<boolean> {
    await attempt.prepare().catch((error: unknown) => {
      if (error instanceof CannotCarry) throw error;
    });
    return this.#health.claimProbe(candidate).catch((error: unknown) => {
      this.#ports.log.fault(this.#call.identity.requestId, error);
      return false;
    });
  }

  async #ordered(): Promise<CandidateOrder> {
    const { candidates, key } = this.#call;
    const origin = newestOrigin(this.#call);
    return new CandidateOrder(candidates, {
      standingOf: await this.#health.standings(key.account),
      score: scoreOf(this.#call),
      isFirst: origin && ((candidate) => isOrigin(candidate, origin)),
    });
  }

  /**
   * Throws an UpstreamFailure or CannotCarry while another candidate can still take over, afterwards a Refusal. Asks the
   * candidate again while its refusals call for another form.
   */
  async *#try(
    attempt: Attempt,
    { candidate, standing, endTurn }: Rank & { endTurn: () => void },
    call: ChatCall,
  ): AsyncGenerator<ChatChunk[], void, undefined> {
    const now = (): number => this.#ports.clock.now();
    const tried: Tried = { candidate, outcome: 'under_way', attempt, standing, startedMs: now() };
    this.#tried.push(tried);
    try {
      const answer = await this.#opened(tried, candidate, call);
      tried.outcome = 'answered';
      tried.contentMs = now();
      this.#firstContentMs = tried.contentMs - call.startedMs;
      // The first content ends a probe, so that other calls can use the candidate early.
      endTurn();
      if (standing) this.#note(this.#health.answered(candidate, standing));
      yield* answer;
      this.#note(this.#health.succeeded(candidate));
    } catch (error) {
      const passedOn = tried.outcome === 'answered';
      tried.endedMs = now();
      if (error instanceof CannotCarry) {
        // Nothing was sent, so this was no attempt.
        this.#tried.pop();
        throw error;
      }
      if (error instanceof UpstreamFailure) {
        tried.outcome = error.reason;
        tried.vendorCode = error.vendorCode;
        this.#order?.failed(candidate, error);
        this.#note(this.#failed({ candidate, standing }, error, passedOn));
        if (!passedOn) throw error;
        this.#failures.push(error);
        this.#another =
          this.#tried.length < attemptsMax && !call.signal.aborted && this.#order?.hasMore === true;
        const { refusalOfFailures } = await import('./refused-attempt.ts');
        throw refusalOfFailures([error], { hadContent: true });
      }
      // A refusal of the caller's request shows that the channel is alive; a bug of ours shows nothing about it.
      const refused = error instanceof Refusal;
      if (!passedOn) tried.outcome = refused ? 'refused' : 'internal';
      if (refused && !passedOn) this.#note(this.#health.refused(candidate, standing));
      throw error;
    }
  }

  /** The answer of the candidate in the first form that it accepts. Each part of the form changes once. */
  async #opened(
    tried: Tried,
    candidate: Candidate,
    call: ChatCall,
  ): Promise<AsyncGenerator<ChatChunk[], void, undefined>> {
    let asked: { again: AskAgain; refused: Attempt } | undefined;
    for (;;) {
      try {
        if (asked && (await sendTheSame(tried.attempt, asked.refused))) {
          tried.attempt = asked.refused;
          tried.forms = (tried.forms ?? 1) - 1;
          throw asked.again.refusal;
        }
        const answer = await opened(tried.attempt.chunks, hasContent);
        if (asked) this.#learn(candidate, asked.again.variant);
        return answer;
      } catch (error) {
        if (error instanceof CannotCarry && asked) {
          // The other form was not sent, so the upstream's refusal stands.
          tried.attempt = asked.refused;
          throw asked.again.refusal;
        }
        if (!(error instanceof AskAgain)) throw error;
        if ((tried.forms ?? 1) >= formsMax) throw error.refusal;
        asked = { again: error, refused: tried.attempt };
        tried.attempt = new Attempt(this.#ports, { candidate, call, variant: error.variant });
        tried.forms = (tried.forms ?? 1) + 1;
      }
    }
  }

  /** What this model taught within the last hour: the dialect in which it answers calls with tools, its quirks, limits. */
  #learnedVariant(candidate: Candidate): Variant {
    const hasTools = (this.#call.request.tools?.length ?? 0) > 0;
    const facts = this.#ports.learned.of(served(candidate));
    const { alsoSpeaks = [] }: Pick<ChannelType, 'alsoSpeaks'> = channelTypes[candidate.channel.type];
    const speaks = (name: string): boolean => hasTools && facts.some(({ fact }) => fact === `speaks:${name}`);
    return {
      ...usual,
      quirks: learnedQuirks(facts),
      dialect: alsoSpeaks.find(speaks),
      refusedLimit: refusedLimit(facts),
    };
  }

  /** Remembers why the usual form was refused, once another one was accepted. */
  #learn(candidate: Candidate, { dialect, quirks, limitRefusal }: Variant): void {
    const learner = served(candidate);
    const untilMs = this.#ports.clock.now() + learnedMs;
    const known = this.#ports.learned.of(learner);
    const facts: Fact[] = [];
    if (dialect !== undefined) facts.push(`speaks:${dialect}`);
    if (limitRefusal) facts.push(limitFact(limitRefusal));
    if (quirks.wantsBack) facts.push(`wants_back:${quirks.wantsBack}`);
    if (quirks.efforts) facts.push(`efforts:${quirks.efforts.join('+')}`);
    for (const fact of facts)
      if (!known.some((one) => one.fact === fact))
        this.#note(this.#ports.learned.learn({ ...learner, fact, untilMs }));
  }

  /** A failed write is logged and never fails the answer. */
  #note(write: Promise<void>): void {
    const { log } = this.#ports;
    this.#writes.push(write.catch((error: unknown) => log.fault(this.#call.identity.requestId, error)));
  }

  /**
   * Reads a refused secret again, because it may have been replaced in its store. A new value prevents the
   * cooldown.
   */
  async #failed(
    { candidate, standing: tried }: Rank,
    failure: UpstreamFailure,
    passedOn: boolean,
  ): Promise<void> {
    const { secret } = candidate;
    const doubted = !passedOn && (failure.status === 401 || failure.kind === 'secret');
    const secretChanged = doubted && secret !== undefined && (await this.#ports.secrets.refresh(secret));
    const { key, entry } = this.#call;
    const hasPassedRelays = entry?.hops.includes(',') === true;
    const { account } = key;
    await this.#health.failed({ candidate, failure, secretChanged, hasPassedRelays, account, tried });
  }
}
