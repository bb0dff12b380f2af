/**
 * Ranks candidates so that each conversation keeps to one of them, since vendors cache prompts by organisation or
 * resource: rendezvous hashing (highest random weight), where every candidate has its own draw for a conversation, and
 * one that goes takes only its own conversations with it. Must not read a store, health or chance: every environment
 * comes to the same order.
 */
import type { ChatCall } from '../call/chat-call.ts';
import type { Candidate } from '../call/candidate.ts';
import type { ChatContentPart, ChatMessage } from '../../wire/chat-request.ts';
import { hash53, mixed32 } from '../../wire/fingerprint.ts';

/** The higher, the earlier within a priority. Below zero only for candidates without a share. */
export type Score = (candidate: Candidate) => number;

/** What of a call ranks its candidates. */
export type RankedCall = Pick<ChatCall, 'key' | 'request' | 'beginning'>;

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
 * The candidates by priority, and by score within one. Works no more than is read of it: most calls need the first one.
 * @param candidates by priority; those of one priority of one model stand together
 */
export function* ranked(
  candidates: readonly Candidate[],
  score: Score,
): Generator<Candidate, void, undefined> {
  for (let start = 0; start < candidates.length;) {
    const end = tierEnd(candidates, start);
    for (const i of highestFirst(candidates, { start, end }, score)) {
      const next = candidates[i];
      if (next) yield next;
    }
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

/** The places of a range of candidates. A binary heap: building it takes one pass, and each one that is read a few steps. */
function* highestFirst(
  candidates: readonly Candidate[],
  { start, end }: { start: number; end: number },
  score: Score,
): Generator<number, void, undefined> {
  const length = end - start;
  const scores = new Float64Array(length);
  const heap = new Uint32Array(length);
  for (let i = 0; i < length; i += 1) {
    const candidate = candidates[start + i];
    if (candidate) scores[i] = score(candidate);
    heap[i] = i;
  }
  for (let place = (length >> 1) - 1; place >= 0; place -= 1) sink(heap, scores, { place, length });
  for (let left = length; left > 0; left -= 1) {
    yield start + (heap[0] ?? 0);
    heap[0] = heap[left - 1] ?? 0;
    sink(heap, scores, { place: 0, length: left - 1 });
  }
}

/** Moves the entry at `place` below all that have a higher score. */
function sink(
  heap: Uint32Array,
  scores: Float64Array,
  { place, length }: { place: number; length: number },
): void {
  const sinking = heap[place] ?? 0;
  const own = scores[sinking] ?? 0;
  let free = place;
  for (let child = 2 * free + 1; child < length; child = 2 * free + 1) {
    let higher = scores[heap[child] ?? 0] ?? 0;
    const other = child + 1 < length ? (scores[heap[child + 1] ?? 0] ?? 0) : -Infinity;
    if (other > higher) {
      child += 1;
      higher = other;
    }
    if (higher <= own) break;
    heap[free] = heap[child] ?? 0;
    free = child;
  }
  heap[free] = sinking;
}
