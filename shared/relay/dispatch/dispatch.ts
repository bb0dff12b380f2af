/**
 * Tries the candidates of a call in order until one answers. Nothing of an answer is passed on before it has content or is
 * complete, so another candidate can take over; after a later failure the reader decides whether it can begin again. Health
 * is written concurrently and must never delay the answer.
 */
import { readUntilOpen } from '../../stream/machine.ts';
import { type ChatChunk, hasContent } from '../../wire/chat-response.ts';
import { AskAgain, Attempt, loadRefusals, usualVariant, type Tried } from './attempt.ts';
import type { Variant } from './refused-attempt.ts';
import type { ChatCall, DispatchedCall, DispatchReport, Candidate } from '../call/call.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
import type { HealthRecorder } from '../health/health-recorder.ts';
import { callTo } from '../call/serving-channels.ts';
import type { ChannelType } from '../../upstreams/channel-type.ts';
import {
  convertRules,
  findRefusedLimit,
  listRuleFacts,
  parseRuleFact,
  type Fact,
  type LearnedFact,
  type Quirks,
  type WordKind,
} from '../../upstreams/quirks.ts';
import { CannotCarry, StateLost } from '../../upstreams/dialect.ts';
import { channelTypes } from '../../upstreams/types/channel-types.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import { Refusal } from '../http/refusal.ts';
import type { SearchedRequest } from '../search.ts';
import { UpstreamFailure } from '../../upstreams/exchange.ts';
import type { WordTally } from './word-tally.ts';
import { orderCandidates, type Rank, CandidateOrder } from './candidate-order.ts';

const attemptsMax = 3;
/** How often one candidate is called in all, whatever it refuses. */
const formsMax = 3;
/** How long the form that a model wants is remembered. */
const learnedMs = 60 * 60 * 1000;

export class Dispatch implements DispatchedCall {
  readonly chunks: AsyncIterable<ChatChunk[]> = { [Symbol.asyncIterator]: () => this.#run() };
  readonly #ports: ChatPorts;
  readonly #call: ChatCall;
  /** The call as it is sent. */
  readonly #sent: ChatCall;
  readonly #searched: SearchedRequest | undefined;
  readonly #health: HealthRecorder;
  readonly #words: WordTally;
  readonly #tried: Tried[] = [];
  readonly #uncarried: Candidate[] = [];
  readonly #failures: UpstreamFailure[] = [];
  readonly #writes: Promise<void>[] = [];
  #order: CandidateOrder | undefined;
  /** The answer broke off after content, and another candidate may be asked. */
  #another = false;
  #firstContentMs: number | undefined;

  /** @param of the call as the client wrote it, and its request with the results of its search, if it asked for one */
  constructor(
    ports: ChatPorts,
    of: {
      call: ChatCall;
      searched: SearchedRequest | undefined;
      health: HealthRecorder;
      words: WordTally;
    },
  ) {
    const { call, health, searched, words } = of;
    this.#words = words;
    this.#ports = ports;
    this.#call = call;
    this.#health = health;
    this.#searched = searched;
    this.#sent = searched ? Object.freeze({ ...call, request: searched.request }) : call;
  }

  report(): DispatchReport {
    const reports = this.#tried.map(({ attempt }) => attempt.report());
    const last = reports.at(-1);
    const { channel, model } = this.#tried.at(-1)?.candidate ?? { model: this.#call.model.base };
    return {
      request: this.#sent.request,
      search: this.#searched?.outcome,
      isSearchBilled: this.#searched?.isBilled,
      tried: this.#tried.map(({ candidate, outcome }) => ({ channel: candidate.channel.id, outcome })),
      channel,
      model,
      firstContentMs: this.#firstContentMs,
      history: () => ({ tried: this.#tried, uncarried: this.#uncarried, order: this.#order }),
      upstreamStatus: reports.findLast((report) => report.upstreamStatus !== undefined)?.upstreamStatus,
      usage: last?.usage,
      sent: last?.sent ?? { dropped: [] },
      state: last?.state,
      origin: last?.origin,
      another: this.#another,
    };
  }

  async awaitWrites(): Promise<void> {
    await Promise.all(this.#writes);
  }

  async *#run(): AsyncGenerator<ChatChunk[], void, undefined> {
    const { alias, signal } = this.#call;
    const tried = this.#tried;
    this.#another = false;
    const order = (this.#order ??= await orderCandidates(this.#call, this.#health));
    let uncarried: CannotCarry | undefined;
    let tooLong: Refusal | undefined;
    while (tried.length < attemptsMax && !signal.aborted) {
      // The last attempt is for a model of the alias that was not asked yet, if one is left.
      if (alias && tried.length === attemptsMax - 1) order.putLast(tried.map((one) => one.candidate.model));
      const rank = order.take();
      if (!rank) break;
      const { candidate } = rank;
      const call = callTo(this.#sent, candidate.model);
      const variant = findLearnedVariant(this.#ports, candidate, this.#call);
      const attempt = this.#createAttempt(candidate, call, variant);
      try {
        if (rank.health?.is === 'probe' && !(await this.#claimsProbe(candidate, attempt))) {
          order.defer(rank);
          continue;
        }
        yield* this.#try(attempt, rank, call);
        return;
      } catch (error) {
        if (error instanceof CannotCarry) {
          if (!(uncarried instanceof StateLost))
            uncarried = error instanceof StateLost ? error : (uncarried ?? error);
          if (this.#tried.at(-1)?.candidate !== candidate) this.#uncarried.push(candidate);
        } else if (error instanceof UpstreamFailure) this.#failures.push(error);
        else if (this.#outgrew(error)) {
          tooLong = error;
          order.leaveOut(candidate.model);
        } else throw error;
      }
    }
    throw await this.#refusal(order.blockedUntilMs, uncarried, tooLong);
  }

  #createAttempt(candidate: Candidate, call: ChatCall, variant: Variant): Attempt {
    const noteWord = (kind: WordKind, word: string): void =>
      this.#note(this.#words.count(candidate.channel.id, kind, word));
    return new Attempt(this.#ports, { candidate, call, variant, noteWord });
  }

  /** Explains why no candidate is left. A model that was not asked because it is blocked may take what the others do not. */
  async #refusal(
    blockedUntilMs: number | undefined,
    uncarried: CannotCarry | undefined,
    tooLong: Refusal | undefined,
  ): Promise<Error> {
    const failures = this.#failures;
    // Report the length before other failures: a shorter request may succeed.
    if (tooLong && blockedUntilMs === undefined) return tooLong;
    if (failures.length === 0 && this.#call.signal.aborted) failures.push(new UpstreamFailure('deadline'));
    const isRefused = uncarried && !(uncarried instanceof StateLost);
    if (failures.length === 0 && isRefused && blockedUntilMs === undefined) {
      const { param, message, details } = uncarried;
      return new InvalidRequest('unsupported_parameter', param, message, details);
    }
    const { refuseAfterFailures, refuseLostThread } = await loadRefusals();
    const isHeldElsewhere = uncarried instanceof StateLost || this.#call.thread !== undefined;
    const lost = uncarried && isHeldElsewhere && refuseLostThread(failures, uncarried);
    if (lost && this.#firstContentMs === undefined) return lost;
    const blockedMs = blockedUntilMs === undefined ? undefined : blockedUntilMs - this.#ports.clock.now();
    return refuseAfterFailures(failures, { hadContent: this.#firstContentMs !== undefined, blockedMs });
  }

  /** The model finds the request too long, and the alias that was asked for has others for that. */
  #outgrew(error: unknown): error is Refusal {
    if (!(error instanceof Refusal) || this.#tried.at(-1)?.outcome !== 'refused') return false;
    return error.body.error.code === 'context_length_exceeded' && this.#call.alias?.onContextLength === true;
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

  /** Throws an UpstreamFailure or CannotCarry while another candidate can still take over, afterwards a Refusal. */
  async *#try(
    attempt: Attempt,
    { candidate, health }: Rank,
    call: ChatCall,
  ): AsyncGenerator<ChatChunk[], void, undefined> {
    const { clock } = this.#ports;
    const tried: Tried = { candidate, outcome: 'under_way', attempt, health, startedMs: clock.now() };
    this.#tried.push(tried);
    try {
      const answer = await this.#openAnswer(tried, call);
      tried.outcome = 'answered';
      tried.contentMs = clock.now();
      this.#firstContentMs = tried.contentMs - call.startedMs;
      if (health) this.#note(this.#health.recordContent(candidate, health));
      yield* answer;
      tried.doneMs = clock.now();
      this.#note(this.#health.recordSuccess(candidate));
    } catch (error) {
      const passedOn = tried.outcome === 'answered';
      tried.endedMs = clock.now();
      if (error instanceof CannotCarry) {
        tried.outcome = 'refused';
        // An attempt that sent no request does not count.
        if (tried.attempt.report().upstreamStatus === undefined) this.#tried.pop();
        else this.#note(this.#health.recordRefusal(candidate, health));
        throw error;
      }
      if (error instanceof UpstreamFailure) {
        tried.outcome = error.reason;
        tried.vendorCode = error.vendorCode;
        this.#order?.noteFailure(candidate, error);
        this.#note(this.#recordFailure({ candidate, health }, error, passedOn));
        if (!passedOn) throw error;
        this.#failures.push(error);
        this.#another =
          this.#tried.length < attemptsMax && !call.signal.aborted && this.#order?.hasMore === true;
        const { refuseAfterFailures } = await loadRefusals();
        throw refuseAfterFailures([error], { hadContent: true });
      }
      // A refusal of the caller's request shows that the channel is alive; a bug of ours shows nothing about it.
      const refused = error instanceof Refusal;
      if (!passedOn) tried.outcome = refused ? 'refused' : 'internal';
      if (refused && !passedOn) this.#note(this.#health.recordRefusal(candidate, health));
      throw error;
    }
  }

  /** The answer of the candidate in the first form that it accepts. Each part of the form changes once. */
  async #openAnswer(tried: Tried, call: ChatCall): Promise<AsyncGenerator<ChatChunk[], void, undefined>> {
    const { candidate } = tried;
    let asked: { again: AskAgain; refused: Attempt } | undefined;
    for (let forms = 1; ; forms += 1) {
      if (forms > 1) tried.forms = forms;
      try {
        const answer = await readUntilOpen(tried.attempt.chunks, hasContent);
        if (asked) this.#learn(candidate, asked.again.variant);
        return answer;
      } catch (error) {
        if (error instanceof CannotCarry && asked) {
          // The other form was not sent, so the upstream's refusal stands.
          tried.attempt = asked.refused;
          throw asked.again.refusal;
        }
        if (!(error instanceof AskAgain)) throw error;
        if (forms === formsMax) throw error.refusal;
        asked = { again: error, refused: tried.attempt };
        const again = this.#createAttempt(candidate, call, error.variant);
        if (await sendsTheSame(again, tried.attempt)) throw error.refusal;
        tried.attempt = again;
      }
    }
  }

  /** Remembers why the usual form was refused, once another one was accepted. */
  #learn({ channel, model }: Candidate, { dialect, quirks, limitRefusal }: Variant): void {
    const { clock, learned } = this.#ports;
    const served = { channel: channel.id, model };
    const untilMs = clock.now() + learnedMs;
    const known = learned.of(served);
    const facts: (Fact | undefined)[] = [
      dialect === undefined ? undefined : `speaks:${dialect}`,
      limitRefusal && limitFact(limitRefusal),
      ...listRuleFacts(quirks),
    ];
    for (const fact of facts)
      if (fact && !known.some((one) => one.fact === fact))
        this.#note(learned.learn({ ...served, fact, untilMs }));
  }

  /** A failed write is logged and never fails the answer. */
  #note(write: Promise<void>): void {
    const { log } = this.#ports;
    this.#writes.push(write.catch((error: unknown) => log.fault(this.#call.identity.requestId, error)));
  }

  /** Reads a refused secret again, because it may have been replaced in its store. A new value prevents the cooldown. */
  async #recordFailure(
    { candidate, health: tried }: Rank,
    failure: UpstreamFailure,
    passedOn: boolean,
  ): Promise<void> {
    const { secret } = candidate;
    const doubted = !passedOn && (failure.status === 401 || failure.kind === 'secret');
    const secretChanged = doubted && secret !== undefined && (await this.#ports.secrets.refresh(secret));
    const { key, entry } = this.#call;
    const hasPassedRelays = entry?.hops.includes(',') === true;
    const { account } = key;
    const { serviceTier = 'default' } = this.report().sent;
    const facts = { secretChanged, hasPassedRelays, account, isOfTier: serviceTier !== 'default' };
    await this.#health.recordFailure({ candidate, failure, tried, ...facts });
  }
}

async function sendsTheSame(...attempts: [Attempt, Attempt]): Promise<boolean> {
  const prepared = await Promise.all(attempts.map((each) => each.prepare())).catch(() => []);
  const [one, other] = prepared.map(({ built }) => built.request);
  const isSame = one?.url === other?.url && one?.body === other?.body;
  return one !== undefined && isSame && JSON.stringify(one.headers) === JSON.stringify(other?.headers);
}

/** Rounded up to a power of two: callers choose limits, and must not fill the item with facts. */
function limitFact({ tokens, overContext }: NonNullable<Variant['limitRefusal']>): Fact {
  const rounded = 2 ** Math.ceil(Math.log2(tokens));
  return overContext ? `limit_over_context:${rounded}` : `refuses_limit:${rounded}`;
}

/** Reads what a model taught within the last hour: the dialect in which it answers calls with tools, its quirks, limits. */
export function findLearnedVariant(
  { learned }: Pick<ChatPorts, 'learned'>,
  { channel, model }: Candidate,
  { request }: Pick<ChatCall, 'request'>,
): Variant {
  const facts = learned.of({ channel: channel.id, model });
  if (facts.length === 0) return usualVariant;
  const hasTools = (request.tools?.length ?? 0) > 0;
  const { alsoSpeaks = [] }: Pick<ChannelType, 'alsoSpeaks'> = channelTypes[channel.type];
  const speaks = (name: string): boolean => hasTools && facts.some(({ fact }) => fact === `speaks:${name}`);
  return {
    ...usualVariant,
    quirks: readLearnedQuirks(facts),
    dialect: alsoSpeaks.find(speaks),
    refusedLimit: findRefusedLimit(facts),
  };
}

const readLearnedQuirks = (facts: readonly LearnedFact[]): Partial<Quirks> =>
  convertRules(Object.assign({}, ...facts.map(({ fact }) => parseRuleFact(fact))));
