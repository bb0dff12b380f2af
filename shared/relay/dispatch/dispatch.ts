/**
 * Tries the candidates of a call in order until one answers. Nothing of an answer is passed on before it has content or is
 * complete, so another candidate can take over; after a later failure the reader decides whether it can begin again. Health
 * is written concurrently and must never delay the answer.
 */
import { opened } from '../../stream/machine.ts';
import { type ChatChunk, hasContent } from '../../wire/chat-response.ts';
import type { ChatContentPart, ChatMessage } from '../../wire/canonical-call.ts';
import { hash53, mixed32 } from '../../wire/ids.ts';
import { AskAgain, Attempt, isOrigin, newestOrigin, usual, type Tried } from './attempt.ts';
import type { Variant } from './refused-attempt.ts';
import type {
  ChatCall,
  DispatchedCall,
  DispatchReport,
  Candidate,
  PassedOver,
  SearchOutcome,
} from '../call/call.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
import type { HealthRecorder, StandingOf } from '../health/health-recorder.ts';
import type { Standing } from '../health/health-states.ts';
import { callTo } from '../call/serving-channels.ts';
import type { ChannelType } from '../../upstreams/channel-type.ts';
import {
  refusedLimit,
  type Fact,
  type LearnedFact,
  returnedFields,
  type Quirks,
} from '../../upstreams/quirks.ts';
import { CannotCarry } from '../../upstreams/dialect.ts';
import { channelTypes } from '../../upstreams/types/channel-types.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import { Refusal } from '../http/refusal.ts';
import type { SearchedRequest } from '../search.ts';
import { UpstreamFailure } from '../../upstreams/exchange.ts';

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
  readonly #search: SearchOutcome | undefined;
  readonly #health: HealthRecorder;
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
    of: { call: ChatCall; searched: SearchedRequest | undefined; health: HealthRecorder },
  ) {
    const { call, health, searched } = of;
    this.#ports = ports;
    this.#call = call;
    this.#health = health;
    this.#search = searched?.outcome;
    this.#sent = searched ? Object.freeze({ ...call, request: searched.request }) : call;
  }

  report(): DispatchReport {
    const reports = this.#tried.map(({ attempt }) => attempt.report());
    const last = reports.at(-1);
    const { channel, model } = this.#tried.at(-1)?.candidate ?? { model: this.#call.model.base };
    return {
      request: this.#sent.request,
      search: this.#search,
      tried: this.#tried.map(({ candidate, outcome }) => ({ channel: candidate.channel.id, outcome })),
      channel,
      model,
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
    const { alias, signal } = this.#call;
    const tried = this.#tried;
    this.#another = false;
    const order = (this.#order ??= await candidatesInOrder(this.#call, this.#health));
    let uncarried: CannotCarry | undefined;
    let tooLong: Refusal | undefined;
    while (tried.length < attemptsMax && !signal.aborted) {
      // The last attempt is for a model of the alias that was not asked yet, if one is left.
      if (alias && tried.length === attemptsMax - 1) order.putLast(tried.map((one) => one.candidate.model));
      const rank = order.take();
      if (!rank) break;
      const { candidate } = rank;
      const call = callTo(this.#sent, candidate.model);
      const variant = this.#learnedVariant(candidate);
      const attempt = new Attempt(this.#ports, { candidate, call, variant });
      try {
        if (rank.standing?.is === 'probe' && !(await this.#claimsProbe(candidate, attempt))) {
          order.defer(rank);
          continue;
        }
        yield* this.#try(attempt, rank, call);
        return;
      } catch (error) {
        if (error instanceof CannotCarry) {
          uncarried ??= error;
          this.#uncarried.push(candidate);
        } else if (error instanceof UpstreamFailure) this.#failures.push(error);
        else if (this.#outgrew(error)) {
          tooLong = error;
          order.leaveOut(candidate.model);
        } else throw error;
      }
    }
    throw await this.#refusal(order.blockedUntilMs, uncarried, tooLong);
  }

  /** Why no candidate is left. A model that was not asked because it is blocked may take what the others do not. */
  async #refusal(
    blockedUntilMs: number | undefined,
    uncarried: CannotCarry | undefined,
    tooLong: Refusal | undefined,
  ): Promise<Error> {
    const failures = this.#failures;
    if (failures.length === 0 && tooLong && blockedUntilMs === undefined) return tooLong;
    if (failures.length === 0 && this.#call.signal.aborted) failures.push(new UpstreamFailure('deadline'));
    if (failures.length === 0 && uncarried && blockedUntilMs === undefined)
      return new InvalidRequest('unsupported_parameter', uncarried.param, uncarried.message);
    const { refusalOfFailures } = await import('./refused-attempt.ts');
    const blockedMs = blockedUntilMs === undefined ? undefined : blockedUntilMs - this.#ports.clock.now();
    return refusalOfFailures(failures, { hadContent: this.#firstContentMs !== undefined, blockedMs });
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
    { candidate, standing }: Rank,
    call: ChatCall,
  ): AsyncGenerator<ChatChunk[], void, undefined> {
    const { clock } = this.#ports;
    const tried: Tried = { candidate, outcome: 'under_way', attempt, standing, startedMs: clock.now() };
    this.#tried.push(tried);
    try {
      const answer = await this.#opened(tried, call);
      tried.outcome = 'answered';
      tried.contentMs = clock.now();
      this.#firstContentMs = tried.contentMs - call.startedMs;
      if (standing) this.#note(this.#health.answered(candidate, standing));
      yield* answer;
      this.#note(this.#health.succeeded(candidate));
    } catch (error) {
      const passedOn = tried.outcome === 'answered';
      tried.endedMs = clock.now();
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
  async #opened(tried: Tried, call: ChatCall): Promise<AsyncGenerator<ChatChunk[], void, undefined>> {
    const { candidate } = tried;
    let asked: { again: AskAgain; refused: Attempt } | undefined;
    for (let forms = 1; ; forms += 1) {
      if (forms > 1) tried.forms = forms;
      try {
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
        if (forms === formsMax) throw error.refusal;
        asked = { again: error, refused: tried.attempt };
        tried.attempt = new Attempt(this.#ports, { candidate, call, variant: error.variant });
      }
    }
  }

  /** What this model taught within the last hour: the dialect in which it answers calls with tools, its quirks, limits. */
  #learnedVariant({ channel, model }: Candidate): Variant {
    const facts = this.#ports.learned.of({ channel: channel.id, model });
    if (facts.length === 0) return usual;
    const hasTools = (this.#call.request.tools?.length ?? 0) > 0;
    const { alsoSpeaks = [] }: Pick<ChannelType, 'alsoSpeaks'> = channelTypes[channel.type];
    const speaks = (name: string): boolean => hasTools && facts.some(({ fact }) => fact === `speaks:${name}`);
    return {
      ...usual,
      quirks: learnedQuirks(facts),
      dialect: alsoSpeaks.find(speaks),
      refusedLimit: refusedLimit(facts),
    };
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
      quirks.wantsBack && `wants_back:${quirks.wantsBack}`,
      quirks.efforts && `efforts:${quirks.efforts.join('+')}`,
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

/** `call`: as the client wrote it, without search results. */
export async function candidatesInOrder(call: ChatCall, health: HealthRecorder): Promise<CandidateOrder> {
  const origin = newestOrigin(call);
  return new CandidateOrder(call.candidates, {
    standingOf: await health.standings(call.key.account),
    score: scoreOf(call),
    isFirst: origin && ((candidate) => isOrigin(candidate, origin)),
  });
}

/** Rounded up to a power of two: callers choose limits, and must not fill the item with facts. */
function limitFact({ tokens, overContext }: NonNullable<Variant['limitRefusal']>): Fact {
  const rounded = 2 ** Math.ceil(Math.log2(tokens));
  return overContext ? `limit_over_context:${rounded}` : `refuses_limit:${rounded}`;
}

/** What refusals taught of how a model differs from its dialect. */
function learnedQuirks(facts: readonly LearnedFact[]): Partial<Quirks> {
  const of = (kind: string): string | undefined =>
    facts.findLast(({ fact }) => fact.startsWith(`${kind}:`))?.fact.slice(kind.length + 1);
  const wantsBack = returnedFields.find((field) => field === of('wants_back'));
  const efforts = of('efforts')?.split('+');
  return { ...(wantsBack && { wantsBack }), ...(efforts && { efforts }) };
}

// The order in which a call's candidates are tried. Health orders them and never leaves one out, but those whose upstream
// said when it may be asked again.

/** Of a call's attempts, a channel has at most this many while another channel is left. */
const attemptsOfChannel = 2;

interface OrderParts {
  /** Undefined: nothing is known against any candidate. */
  standingOf: StandingOf | undefined;
  /** The higher, the earlier within a priority. */
  score: Score;
  /** Whether a candidate ranks first, because the conversation's state comes from it. */
  isFirst?: ((candidate: Candidate) => boolean) | undefined;
}

/** A candidate as one call finds it, and what is known against it. A `probe` is to be claimed first. */
export interface Rank {
  readonly candidate: Candidate;
  readonly standing: Standing | undefined;
}

/**
 * A call's candidates, each once, by priority, and by score within one; the origin of state comes first. Those in
 * cooldown come last, the one whose cooldown ends first before the others.
 */
export class CandidateOrder {
  /** All of the call. */
  readonly candidates: readonly Candidate[];
  readonly #standingOf: StandingOf;
  readonly #failedOfChannel = new Map<string, number>();
  /** Those that were not taken, in order. */
  #left: readonly Candidate[];
  /** Probes that other calls have claimed. */
  readonly #deferred = new Set<Candidate>();
  /** Models whose candidates come after those of others. */
  #last: readonly string[] = [];

  /** @param candidates by priority */
  constructor(
    candidates: readonly Candidate[],
    { standingOf = () => undefined, score, isFirst }: OrderParts,
  ) {
    this.candidates = candidates;
    this.#standingOf = standingOf;
    const byRank = ranked(candidates, score);
    const first = isFirst && candidates.find(isFirst);
    this.#left = first ? [first, ...byRank.filter((one) => one !== first)] : byRank;
  }

  take(): Rank | undefined {
    const rank = this.#next();
    this.#left = this.#left.filter((one) => one !== rank?.candidate);
    return rank;
  }

  get hasMore(): boolean {
    return this.#next() !== undefined;
  }

  /** Another call probes the candidate, so it comes after those that can serve. */
  defer({ candidate }: Rank): void {
    this.#deferred.add(candidate);
    this.#left = [...this.#left, candidate];
  }

  /** A channel that fails for all its secrets, or twice, makes room for others. */
  failed(candidate: Candidate, failure: UpstreamFailure): void {
    const ofSecret = failure.kind === 'secret' || [401, 402, 403, 429].includes(failure.status ?? 0);
    const served = servedBy(candidate);
    const failed = this.#failedOfChannel.get(served) ?? 0;
    this.#failedOfChannel.set(served, ofSecret ? failed + 1 : attemptsOfChannel);
  }

  /** Why the candidate was not taken, as things stood when the call began. */
  passedOver(candidate: Candidate): PassedOver {
    return { candidate, ...(this.#standingOf(candidate) ?? { is: 'not_needed' }) };
  }

  /** From now on these models come after others, if any is left. */
  putLast(models: readonly string[]): void {
    this.#last = models;
  }

  /** No candidate of the model is taken any more. */
  leaveOut(model: string): void {
    this.#left = this.#left.filter((one) => one.model !== model);
  }

  /** Of the candidates that are not asked because their upstreams said so, when the first may be asked. */
  get blockedUntilMs(): number | undefined {
    const blocked = this.#left.map(this.#standingOf).filter((standing) => standing?.is === 'blocked');
    return blocked.length === 0 ? undefined : Math.min(...blocked.map((one) => one?.untilMs ?? Infinity));
  }

  #next(): Rank | undefined {
    let probe: Rank | undefined;
    let spent: Rank | undefined;
    const resting: { candidate: Candidate; standing: Standing }[] = [];
    for (const candidate of this.#left) {
      const standing = this.#standingOf(candidate);
      const isProbe = standing?.is === 'probe' && !this.#deferred.has(candidate);
      if (standing?.is === 'blocked') continue;
      if (standing && !isProbe) resting.push({ candidate, standing });
      else if (this.#isSpent(candidate)) spent ??= { candidate, standing };
      else if (probe) return probe;
      else if (standing) probe = { candidate, standing };
      else return { candidate, standing };
    }
    // While no other candidate can serve, every call tries the probe, so there is nothing to claim.
    if (probe?.standing) resting.push({ ...probe, standing: probe.standing });
    return spent ?? this.#leastBad(resting);
  }

  #leastBad(resting: { candidate: Candidate; standing: Standing }[]): Rank | undefined {
    const [best] = resting.toSorted(
      (a, b) =>
        Number(this.#isSpent(a.candidate)) - Number(this.#isSpent(b.candidate)) ||
        a.standing.untilMs - b.standing.untilMs,
    );
    if (best?.standing.is !== 'probe') return best;
    return { ...best, standing: { ...best.standing, is: 'resting' } };
  }

  #isSpent(candidate: Candidate): boolean {
    const failed = this.#failedOfChannel.get(servedBy(candidate)) ?? 0;
    return failed >= attemptsOfChannel || this.#last.includes(candidate.model);
  }
}

/** A channel that failed for one model of an alias may answer for another. */
const servedBy = ({ channel, model }: Candidate): string => `${model} ${channel.id}`;

// Ranks candidates so that each conversation keeps to one of them, since vendors cache prompts by organisation or
// resource: rendezvous hashing (highest random weight), where every candidate has its own draw for a conversation, and
// one that goes takes only its own conversations with it. Must not read a store, health or chance: every environment
// comes to the same order.

/** The higher, the earlier within a priority. Below zero only for candidates without a share. */
export type Score = (candidate: Candidate) => number;

/** What of a call ranks its candidates. */
type RankedCall = Pick<ChatCall, 'key' | 'request' | 'beginning' | 'conversation'>;

/** The score by which a call's conversation ranks candidates. `call`: as the client wrote it, without search results. */
export function scoreOf(call: RankedCall): Score {
  const conversation = conversationHash(call);
  let known = { model: '', hash: 0 };
  return ({ model, share, hash }) => {
    if (model !== known.model) known = { model, hash: hash53(model, conversation) };
    return shareOfDraw(share, drawOf(known.hash, hash));
  };
}

/**
 * The rank of a candidate by a draw from (0, 1): the highest rank falls to each candidate as often as its share says.
 * Candidates without a share come after all others.
 */
export const shareOfDraw = (share: number, draw: number): number =>
  share > 0 ? -share / Math.log(draw) : draw - 1;

/** From (0, 1). 32 bits: of 500 candidates two have one draw in one of 35,000 conversations, and then the first is first. */
const drawOf = (conversation: number, candidate: number): number =>
  ((mixed32(conversation ^ candidate, (conversation / 2 ** 32) ^ (candidate / 2 ** 32)) >>> 0) + 0.5) /
  2 ** 32;

/**
 * What stays the same over all turns of a conversation: the client's own name for it, else how it began. Later turns
 * only append, so a system message after the first turn of the user is not part of it. It has no model, so that the
 * models of an alias each have an order of their own.
 */
export function conversationHash({ key, request, beginning: began, conversation }: RankedCall): number {
  const name = conversation ?? request.prompt_cache_key;
  const texts = name ? [name] : beginningOf(began ?? request.messages);
  return texts.reduce((hash, text) => hash53(text, hash), hash53(key.account));
}

/** The texts of the system and of the first turn of the user. */
function beginningOf(messages: readonly ChatMessage[]): string[] {
  const user = messages.findIndex(({ role }) => role === 'user');
  const before = user < 0 ? messages : messages.slice(0, user);
  const system = before.filter(({ role }) => role === 'system' || role === 'developer');
  return [...outermost(system).flatMap(textsOf), '', ...messages.slice(user, user + 1).flatMap(textsOf)];
}

const textsOf = ({ content }: ChatMessage): string[] =>
  typeof content === 'string' ? [content] : outermost(content ?? []).map(textOf);

/** Markers of caches are not part of it: clients move them from turn to turn. */
function textOf({ type, text, image_url: image, file, input_audio: audio }: ChatContentPart): string {
  // A signature in a query may be renewed with each turn.
  if (image) return withoutQuery(image.url);
  if (file) return file.file_data ?? file.file_id ?? withoutQuery(file.file_url ?? '');
  const { data } = (audio ?? {}) as { data?: unknown };
  return text ?? (typeof data === 'string' ? data : type);
}

function withoutQuery(url: string): string {
  const query = url.startsWith('http') ? url.indexOf('?') : -1;
  return query < 0 ? url : url.slice(0, query);
}

const partsMax = 16;

/** Callers choose how many parts there are: of many, only the first and last ones count. */
const outermost = <Part>(parts: readonly Part[]): readonly Part[] =>
  parts.length <= partsMax ? parts : [...parts.slice(0, partsMax / 2), ...parts.slice(-partsMax / 2)];

/**
 * The candidates by priority, and by score within one.
 * @param candidates by priority; those of one priority of one model stand together
 */
export function ranked(candidates: readonly Candidate[], score: Score): Candidate[] {
  let tier = 0;
  const scored = candidates.map((candidate, i) => {
    const before = candidates[i - 1] ?? candidate;
    if (before.channel.priority !== candidate.channel.priority || before.model !== candidate.model) tier += 1;
    return { candidate, tier, score: score(candidate) };
  });
  scored.sort((a, b) => a.tier - b.tier || b.score - a.score);
  return scored.map(({ candidate }) => candidate);
}
