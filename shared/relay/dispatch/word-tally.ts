/**
 * Counts vendors' words that the vocabulary lacks, and stores them for the channel, whose row then names the line to add. A vendor
 * could send any number of words, so a channel keeps 8, and a count is stored only when it has doubled.
 */
import { anyModel, parseWordFact, type WordKind } from '../../upstreams/quirks.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';

const wordsMax = 8;
const wordLengthMax = 40;
const rememberedMs = 7 * 24 * 60 * 60 * 1000;
/** Limits the words of all channels. More are not counted until the environment ends. */
const countsMax = 1_000;

/** One for each function. */
export class WordTally {
  readonly #ports: Pick<ChatPorts, 'clock' | 'learned'>;
  readonly #counts = new Map<string, number>();

  constructor(ports: Pick<ChatPorts, 'clock' | 'learned'>) {
    this.#ports = ports;
  }

  /** Rejects when the store does. */
  async count(channel: string, kind: WordKind, said: string): Promise<void> {
    const { clock, learned } = this.#ports;
    const word = said.slice(0, wordLengthMax) || 'unreadable';
    const facts = learned.of({ channel, model: anyModel });
    const words = facts.flatMap(({ fact, untilMs }) => {
      const parsed = parseWordFact(fact);
      return parsed ? [{ ...parsed, untilMs }] : [];
    });
    const known = words.find((one) => one.kind === kind && one.word === word);
    const key = `${kind} ${word} ${channel}`;
    const isNew = !this.#counts.has(key);
    if ((!known && words.length >= wordsMax) || (isNew && this.#counts.size >= countsMax)) return;
    const count = (this.#counts.get(key) ?? 0) + 1;
    this.#counts.set(key, count);
    const nowMs = clock.now();
    const isFresh = known !== undefined && known.untilMs - nowMs > rememberedMs / 2;
    if (isFresh && count < 2 * known.count) return;
    const most = Math.max(count, known?.count ?? 0);
    const untilMs = nowMs + rememberedMs;
    await learned.learn({ channel, model: anyModel, fact: `${kind}_word:${word}+${most}`, untilMs });
  }
}
