/**
 * Orders the candidates of a call. Cooldowns put candidates last but never leave one out, unless its upstream named the
 * time at which it may be asked again.
 */
import type { ChatContentPart, ChatMessage } from '../../wire/canonical-call.ts';
import { hash53, mix32 } from '../../wire/ids.ts';
import { isOrigin, findNewestOrigin } from './attempt.ts';
import type { ChatCall, Candidate, PassedOver } from '../call/call.ts';
import type { HealthRecorder, FindHealth } from '../health/health-recorder.ts';
import type { CandidateHealth } from '../health/health-states.ts';
import { UpstreamFailure } from '../../upstreams/exchange.ts';

/** `call`: as the client wrote it, without search results. */
export async function orderCandidates(call: ChatCall, health: HealthRecorder): Promise<CandidateOrder> {
  const origin = findNewestOrigin(call);
  return new CandidateOrder(call.candidates, {
    findHealth: await health.loadHealth(call.key.account),
    score: scoreOf(call),
    isFirst: origin && ((candidate) => isOrigin(candidate, origin)),
  });
}

/** While another channel is left, a channel gets at most this many attempts of a call. */
const attemptsOfChannel = 2;

interface OrderInput {
  findHealth: FindHealth | undefined;
  /** The higher, the earlier within a priority. */
  score: Score;
  /** Finds the candidate that ranks first, because the conversation's state comes from it. */
  isFirst?: ((candidate: Candidate) => boolean) | undefined;
}

/** A candidate as one call finds it, and what is known against it. A `probe` is to be claimed first. */
export interface Rank {
  readonly candidate: Candidate;
  readonly health: CandidateHealth | undefined;
}

/**
 * A call's candidates, each once, by priority, and by score within one; the origin of state comes first. Those in
 * cooldown come last, the one whose cooldown ends first before the others.
 */
export class CandidateOrder {
  /** All of the call. */
  readonly candidates: readonly Candidate[];
  readonly #findHealth: FindHealth;
  readonly #failedOfChannel = new Map<string, number>();
  /** Candidates that were not taken yet, in order. */
  #left: readonly Candidate[];
  /** Probes that other calls have claimed. */
  readonly #deferred = new Set<Candidate>();
  /** Models whose candidates come after those of others. */
  #last: readonly string[] = [];

  /** @param candidates by priority */
  constructor(
    candidates: readonly Candidate[],
    { findHealth = () => undefined, score, isFirst }: OrderInput,
  ) {
    this.candidates = candidates;
    this.#findHealth = findHealth;
    const byRank = rankByScore(candidates, score);
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
  noteFailure(candidate: Candidate, failure: UpstreamFailure): void {
    const ofSecret = failure.kind === 'secret' || [401, 402, 403, 429].includes(failure.status ?? 0);
    const served = channelAndModelOf(candidate);
    const failed = this.#failedOfChannel.get(served) ?? 0;
    this.#failedOfChannel.set(served, ofSecret ? failed + 1 : attemptsOfChannel);
  }

  /** Why the candidate was not taken, as things stood when the call began. */
  passedOver(candidate: Candidate): PassedOver {
    return { candidate, ...(this.#findHealth(candidate) ?? { is: 'not_needed' }) };
  }

  /** From now on these models come after others, if any is left. */
  putLast(models: readonly string[]): void {
    this.#last = models;
  }

  /** No candidate of the model is taken any more. */
  leaveOut(model: string): void {
    this.#left = this.#left.filter((one) => one.model !== model);
  }

  /** The first time at which a candidate may be asked whose upstream named a time. */
  get blockedUntilMs(): number | undefined {
    const blocked = this.#left.map(this.#findHealth).filter((health) => health?.is === 'blocked');
    return blocked.length === 0 ? undefined : Math.min(...blocked.map((one) => one?.untilMs ?? Infinity));
  }

  #next(): Rank | undefined {
    let probe: Rank | undefined;
    let spent: Rank | undefined;
    const cooling: { candidate: Candidate; health: CandidateHealth }[] = [];
    for (const candidate of this.#left) {
      const health = this.#findHealth(candidate);
      const isProbe = health?.is === 'probe' && !this.#deferred.has(candidate);
      if (health?.is === 'blocked') continue;
      if (health && !isProbe) cooling.push({ candidate, health });
      else if (this.#isSpent(candidate)) spent ??= { candidate, health };
      else if (probe) return probe;
      else if (health) probe = { candidate, health };
      else return { candidate, health };
    }
    // While no other candidate can serve, every call tries the probe, so there is nothing to claim.
    if (probe?.health) cooling.push({ ...probe, health: probe.health });
    return spent ?? this.#chooseShortestCooldown(cooling);
  }

  #chooseShortestCooldown(cooling: { candidate: Candidate; health: CandidateHealth }[]): Rank | undefined {
    const [best] = cooling.toSorted(
      (a, b) =>
        Number(this.#isSpent(a.candidate)) - Number(this.#isSpent(b.candidate)) ||
        a.health.untilMs - b.health.untilMs,
    );
    if (best?.health.is !== 'probe') return best;
    return { ...best, health: { ...best.health, is: 'resting' } };
  }

  #isSpent(candidate: Candidate): boolean {
    const failed = this.#failedOfChannel.get(channelAndModelOf(candidate)) ?? 0;
    return failed >= attemptsOfChannel || this.#last.includes(candidate.model);
  }
}

/** A channel that failed for one model of an alias may answer for another. */
const channelAndModelOf = ({ channel, model }: Candidate): string => `${model} ${channel.id}`;

// Ranks candidates so that each conversation keeps to one of them, since vendors cache prompts by organisation or
// resource: rendezvous hashing (highest random weight), where every candidate has its own draw for a conversation, and
// one that goes takes only its own conversations with it. Must not read a store, health or chance: every environment
// comes to the same order.

/** The higher, the earlier within a priority. Below zero only for candidates without a share. */
export type Score = (candidate: Candidate) => number;

type RankedCall = Pick<ChatCall, 'key' | 'request' | 'beginning' | 'conversation'>;

/** The score by which a call's conversation ranks candidates. `call`: as the client wrote it, without search results. */
export function scoreOf(call: RankedCall): Score {
  const conversation = hashConversation(call);
  let known = { model: '', hash: 0 };
  return ({ model, share, hash }) => {
    if (model !== known.model) known = { model, hash: hash53(model, conversation) };
    return scoreDraw(share, drawOf(known.hash, hash));
  };
}

/**
 * The rank of a candidate by a draw from (0, 1): the highest rank falls to each candidate as often as its share says.
 * Candidates without a share come after all others.
 */
export const scoreDraw = (share: number, draw: number): number =>
  share > 0 ? -share / Math.log(draw) : draw - 1;

/** From (0, 1). 32 bits: of 500 candidates two have one draw in one of 35,000 conversations, and then the first is first. */
const drawOf = (conversation: number, candidate: number): number =>
  ((mix32(conversation ^ candidate, (conversation / 2 ** 32) ^ (candidate / 2 ** 32)) >>> 0) + 0.5) / 2 ** 32;

/**
 * Hashes what stays the same over all turns of a conversation: the client's own name for it, else its beginning. Later
 * turns only append, so a system message after the first turn of the user does not count. The model does not count either,
 * so each model of an alias has an order of its own.
 */
export function hashConversation({ key, request, beginning: began, conversation }: RankedCall): number {
  const name = conversation ?? request.prompt_cache_key;
  const texts = name ? [name] : beginningOf(began ?? request.messages);
  return texts.reduce((hash, text) => hash53(text, hash), hash53(key.account));
}

/** The texts of the system and of the first turn of the user. */
function beginningOf(messages: readonly ChatMessage[]): string[] {
  const user = messages.findIndex(({ role }) => role === 'user');
  const before = user < 0 ? messages : messages.slice(0, user);
  const system = before.filter(({ role }) => role === 'system' || role === 'developer');
  return [...takeOutermost(system).flatMap(textsOf), '', ...messages.slice(user, user + 1).flatMap(textsOf)];
}

const textsOf = ({ content }: ChatMessage): string[] =>
  typeof content === 'string' ? [content] : takeOutermost(content ?? []).map(textOf);

/** Markers of caches are not part of it: clients move them from turn to turn. */
function textOf({ type, text, image_url: image, file, input_audio: audio }: ChatContentPart): string {
  // A signature in a query may be renewed with each turn.
  if (image) return removeQuery(image.url);
  if (file) return file.file_data ?? file.file_id ?? removeQuery(file.file_url ?? '');
  const { data } = (audio ?? {}) as { data?: unknown };
  return text ?? (typeof data === 'string' ? data : type);
}

function removeQuery(url: string): string {
  const query = url.startsWith('http') ? url.indexOf('?') : -1;
  return query < 0 ? url : url.slice(0, query);
}

const partsMax = 16;

/** Callers choose how many parts there are: of many, only the first and last ones count. */
const takeOutermost = <Part>(parts: readonly Part[]): readonly Part[] =>
  parts.length <= partsMax ? parts : [...parts.slice(0, partsMax / 2), ...parts.slice(-partsMax / 2)];

/**
 * The candidates by priority, and by score within one.
 * @param candidates by priority; those of one priority of one model stand together
 */
export function rankByScore(candidates: readonly Candidate[], score: Score): Candidate[] {
  let tier = 0;
  const scored = candidates.map((candidate, i) => {
    const before = candidates[i - 1] ?? candidate;
    if (before.channel.priority !== candidate.channel.priority || before.model !== candidate.model) tier += 1;
    return { candidate, tier, score: score(candidate) };
  });
  scored.sort((a, b) => a.tier - b.tier || b.score - a.score);
  return scored.map(({ candidate }) => candidate);
}
