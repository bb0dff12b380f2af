/**
 * Decides the order in which a call's candidates are tried. Health orders them and never leaves one out, but those whose
 * upstream said when it may be asked again. Reads health; must never write it.
 */
import type { UpstreamFailure } from '../../upstreams/exchange.ts';
import type { Candidate, PassedOver, ChatCall } from '../call/call.ts';
import type { StandingOf } from '../health/health-recorder.ts';
import type { Standing } from '../health/health-states.ts';
import type { ChatContentPart, ChatMessage } from '../../wire/canonical-call.ts';
import { hash53, mixed32, fingerprint } from '../../wire/ids.ts';
import type { Repeat } from '../../upstreams/dialect.ts';
import type { Quirks } from '../../upstreams/quirks.ts';
import { upstreamModel } from '../../upstreams/types/channel-quirks.ts';
import type { StateOrigin, StatePart, TurnState } from '../../wire/turn-state.ts';

/** Of a call's attempts, a channel has at most this many while another channel is left. */
const attemptsOfChannel = 2;

export interface OrderPorts {
  /** Undefined: nothing is known against any candidate. */
  standingOf: StandingOf | undefined;
  /** The higher, the earlier within a priority. */
  score: Score;
  /** Whether a candidate ranks first, because the conversation's state comes from it. Absent: none does. */
  isFirst?: ((candidate: Candidate) => boolean) | undefined;
}

/** A candidate as one call finds it. */
export interface Rank {
  readonly candidate: Candidate;
  /**
   * Undefined: nothing is known against it. `probe`: the caller claims the probe first, and defers the candidate if
   * another call has it. `resting`: the caller waits for a slot.
   */
  readonly standing: Standing | undefined;
}

/**
 * A call's candidates, each once, by priority, and by score within one; the origin of state comes first. Those in
 * cooldown come last, the one whose cooldown ends first before the others. Looks at no more candidates than are taken.
 */
export class CandidateOrder {
  /** All of the call. */
  readonly candidates: readonly Candidate[];
  readonly #source: Iterator<Candidate, void, undefined>;
  readonly #standingOf: StandingOf | undefined;
  readonly #failedOfChannel = new Map<string, number>();
  /** Taken from the source, and to be tried next. */
  #ahead: Rank[] = [];
  /** Candidates of channels that had their share of attempts. */
  #spent: Rank[] = [];
  /** Models whose candidates come after those of others. */
  #last: ReadonlySet<string> = new Set();
  readonly #leftOut = new Set<string>();
  #resting: { candidate: Candidate; standing: Standing }[] = [];
  #blocked: { candidate: Candidate; standing: Standing }[] = [];

  /** @param candidates by priority */
  constructor(candidates: readonly Candidate[], { standingOf, score, isFirst }: OrderPorts) {
    this.candidates = candidates;
    this.#standingOf = standingOf;
    this.#source = sourceOf(candidates, score, isFirst);
  }

  take(): Rank | undefined {
    const rank = this.#serving();
    if (rank?.standing?.is !== 'probe') return rank ?? this.#spent.shift() ?? this.#leastBad();
    // While no other candidate can serve, every call tries this one, so there is nothing to claim.
    const other = this.#serving();
    if (other) this.#ahead.unshift(other);
    else this.#rest(rank.candidate, rank.standing);
    return other ? rank : (this.#spent.shift() ?? this.#leastBad());
  }

  /** Another call probes the candidate, so it comes after those that can serve. */
  defer({ candidate, standing }: Rank): void {
    if (standing) this.#rest(candidate, standing);
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
    return { candidate, ...(this.#standingOf?.(candidate) ?? { is: 'not_needed' }) };
  }

  /** From now on these models come after others, if any is left. */
  putLast(models: Iterable<string>): void {
    this.#last = new Set(models);
  }

  /** No candidate of the model is taken any more. */
  leaveOut(model: string): void {
    this.#leftOut.add(model);
    const isOther = ({ candidate }: { candidate: Candidate }): boolean => candidate.model !== model;
    this.#ahead = this.#ahead.filter(isOther);
    this.#spent = this.#spent.filter(isOther);
    this.#resting = this.#resting.filter(isOther);
    this.#blocked = this.#blocked.filter(isOther);
  }

  get hasMore(): boolean {
    const rank = this.take();
    if (rank) this.#ahead.unshift(rank);
    return rank !== undefined;
  }

  /** Of the candidates that are not asked because their upstreams said so, the one that may be asked first. */
  get blocked(): Standing | undefined {
    const [first] = this.#blocked.toSorted((a, b) => a.standing.untilMs - b.standing.untilMs);
    return first?.standing;
  }

  /** The next candidate that is not in cooldown and whose channel has not had its share. */
  #serving(): Rank | undefined {
    for (;;) {
      const rank = this.#ahead.shift() ?? this.#next();
      if (!rank) return undefined;
      const { candidate, standing } = rank;
      if (standing && standing.is !== 'probe') this.#rest(candidate, standing);
      else if (this.#isSpent(candidate)) this.#spent.push(rank);
      else return rank;
    }
  }

  #next(): Rank | undefined {
    for (;;) {
      const { value: candidate, done } = this.#source.next();
      if (done || !candidate) return undefined;
      if (!this.#leftOut.has(candidate.model)) return { candidate, standing: this.#standingOf?.(candidate) };
    }
  }

  #rest(candidate: Candidate, standing: Standing): void {
    const kept = standing.is === 'blocked' ? this.#blocked : this.#resting;
    kept.push({ candidate, standing });
  }

  #leastBad(): Rank | undefined {
    const ofOthers = this.#resting.filter(({ candidate }) => !this.#isSpent(candidate));
    const left = ofOthers.length > 0 ? ofOthers : this.#resting;
    const [best] = left.toSorted((a, b) => a.standing.untilMs - b.standing.untilMs);
    if (!best) return undefined;
    this.#resting.splice(this.#resting.indexOf(best), 1);
    const { candidate, standing } = best;
    return { candidate, standing: standing.is === 'probe' ? { ...standing, is: 'resting' } : standing };
  }

  #isSpent(candidate: Candidate): boolean {
    const failed = this.#failedOfChannel.get(servedBy(candidate)) ?? 0;
    return failed >= attemptsOfChannel || this.#last.has(candidate.model);
  }
}

/** A channel that failed for one model of an alias may answer for another. */
const servedBy = ({ channel, model }: Candidate): string => `${model} ${channel.id}`;

function* sourceOf(
  candidates: readonly Candidate[],
  score: Score,
  isFirst: OrderPorts['isFirst'],
): Generator<Candidate, void, undefined> {
  const first = isFirst && candidates.find(isFirst);
  if (first) yield first;
  for (const candidate of ranked(candidates, score)) if (candidate !== first) yield candidate;
}

// Ranks candidates so that each conversation keeps to one of them, since vendors cache prompts by organisation or
// resource: rendezvous hashing (highest random weight), where every candidate has its own draw for a conversation, and
// one that goes takes only its own conversations with it. Must not read a store, health or chance: every environment
// comes to the same order.

/** The higher, the earlier within a priority. Below zero only for candidates without a share. */
export type Score = (candidate: Candidate) => number;

/** What of a call ranks its candidates. */
type RankedCall = Pick<ChatCall, 'key' | 'request' | 'beginning'>;

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
export function conversationHash({ key, request, beginning: began }: RankedCall): number {
  const name = request.prompt_cache_key;
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
 * The candidates by priority, and by score within one. Works no more than is read of it: most calls need the first priority.
 * @param candidates by priority; those of one priority of one model stand together
 */
export function* ranked(
  candidates: readonly Candidate[],
  score: Score,
): Generator<Candidate, void, undefined> {
  for (let start = 0; start < candidates.length;) {
    const end = tierEnd(candidates, start);
    const tier = candidates.slice(start, end).map((candidate) => ({ candidate, score: score(candidate) }));
    // As a whole, though most calls need the first alone: 500 take less than half a millisecond, and few have ten.
    tier.sort((a, b) => b.score - a.score);
    for (const { candidate } of tier) yield candidate;
    start = end;
  }
}

/** Where the candidates of a priority end. */
function tierEnd(candidates: readonly Candidate[], start: number): number {
  const { channel: { priority } = {}, model } = candidates[start] ?? {};
  for (let end = start + 1; end < candidates.length; end += 1) {
    const next = candidates[end];
    if (next?.channel.priority !== priority || next?.model !== model) return end;
  }
  return candidates.length;
}

// The forms in which one candidate is asked: the usual one, and repeats of a refused request.

export interface LimitRefusal {
  /** The limit that was sent. */
  tokens: number;
  /** The prompt and the limit together are more than the model's context; a shorter prompt may have this limit. */
  overContext: boolean;
}

/** How an attempt differs from the usual one. */
export interface Variant {
  /** Overrides the channel's dialect. */
  readonly dialect?: string | undefined;
  readonly without: ReadonlySet<Repeat>;
  /** How the model differs from what its name and its row say, because its refusals said so. */
  readonly quirks: Partial<Quirks>;
  /** Limits from this one on are not sent, because the model refused it. Undefined: none is known. */
  readonly refusedLimit?: number | undefined;
  /** The model's maximum as its refusal named it. */
  readonly limitMost?: number | undefined;
  /** The refusal of a limit that led to this form. */
  readonly limitRefusal?: LimitRefusal | undefined;
}

export const usual: Variant = { without: new Set(), quirks: {} };

/** The same candidate is to be asked again. Nothing of the refused answer was passed on. */
export class AskAgain extends Error {
  override readonly name = 'AskAgain';
  readonly variant: Variant;
  /** What the refusal comes to if the other form cannot be sent. */
  readonly refusal: Error;

  constructor(variant: Variant, refusal: Error) {
    super('the same candidate is asked again');
    this.variant = variant;
    this.refusal = refusal;
  }
}

// Decides which states of earlier turns go to which candidate.

/** Where the state of a candidate's answers comes from. `model`: the upstream's name. */
export const originOf = (
  { channel, secret }: Pick<Candidate, 'channel' | 'secret'>,
  { dialect, model }: Pick<StateOrigin, 'dialect' | 'model'>,
): StateOrigin => ({ dialect, channel: channel.id, secret: secretMark(secret), model });

/** The reference is marked, not the secret: a secret that is replaced in its store may stay with its organisation. */
const secretMark = (secret: string | undefined): string => (secret === undefined ? '' : fingerprint(secret));

/**
 * Whether a candidate is the one that a state came from. The row may have mapped its model to another one of the upstream
 * since.
 */
export const isOrigin = (
  { channel, secret, model }: Pick<Candidate, 'channel' | 'secret' | 'model'>,
  origin: Pick<StateOrigin, 'channel' | 'secret' | 'model'>,
): boolean =>
  channel.id === origin.channel &&
  secretMark(secret) === origin.secret &&
  upstreamModel(channel, model) === origin.model;

/** The origin of the newest turn with state. Undefined: no turn has one. */
export function newestOrigin({
  states,
  request,
}: Pick<ChatCall, 'states' | 'request'>): StateOrigin | undefined {
  if (states.size === 0) return undefined;
  const newest = request.messages.findLast((message) => states.has(message));
  return newest && states.get(newest)?.origin;
}

interface CandidateStates {
  states: ReadonlyMap<ChatMessage, readonly StatePart[]>;
  /** The turns whose state may not. */
  foreign: ReadonlySet<ChatMessage>;
  /** At least one turn's state may not go to this candidate. */
  dropped: boolean;
}

/** The states that may go to a candidate that speaks `dialect`. */
export function statesFor(
  candidate: Pick<Candidate, 'channel' | 'secret' | 'model'>,
  { dialect, wantsBack }: { dialect: string } & Pick<Quirks, 'wantsBack'>,
  call: Pick<ChatCall, 'states' | 'stateDropped'>,
): CandidateStates {
  const fits = ({ origin, parts }: TurnState): boolean =>
    origin.dialect === dialect && (isOrigin(candidate, origin) || isPlain(parts, wantsBack));
  const fitting = [...call.states].filter(([, state]) => fits(state));
  return {
    foreign: new Set([...call.states].filter(([, state]) => !fits(state)).map(([message]) => message)),
    states: new Map(fitting.map(([message, { parts }]) => [message, parts])),
    dropped: call.stateDropped || fitting.length < call.states.size,
  };
}

/** Reasoning as plain text is bound to no organisation, so every upstream that wants such text back may have it. */
const isPlain = (parts: readonly StatePart[], wantsBack: Quirks['wantsBack']): boolean =>
  wantsBack === 'reasoning_content' &&
  parts.every((part) => !('opaque' in part) || Object.keys(part.opaque).join() === wantsBack);
