/** What the upstream of seeded stories answers: the last message says how many pieces, and how long each takes. */

const nano = 1_000_000_000;
/** Counts that are plausible for the texts: others would be replaced by estimates. */
const tokensOfPiece = 7;
const inputTokens = 20;

export interface SlowAnswer {
  seed: number;
  gapMs: number;
  /** Each says which turn of a conversation the upstream saw. */
  pieces: string[];
  promptTokens: number;
  completionTokens: number;
}

export const inputOf = (seed: number, pieces: number, gapMs: number): string =>
  `seed=${seed} pieces=${pieces} gap=${gapMs}`;

export const piecesOf = (count: number, turn = 1): string[] =>
  Array.from({ length: count }, (_, piece) => `piece ${piece} of turn ${turn} `);

/** @param body as it came to the upstream */
export function slowAnswer(body: Record<string, unknown>): SlowAnswer {
  const asked = [...JSON.stringify(body['messages']).matchAll(/seed=(\d+) pieces=(\d+) gap=(\d+)/g)];
  const [seed = 0, count = 1, gapMs = 0] = (asked.at(-1) ?? []).slice(1).map(Number);
  const before = asked.slice(0, -1).map(([, , pieces]) => Number(pieces));
  return {
    seed,
    gapMs,
    pieces: piecesOf(count, asked.length),
    promptTokens: promptTokensOf(before),
    completionTokens: count * tokensOfPiece,
  };
}

/** @param before the pieces of the turns before */
const promptTokensOf = (before: number[]): number =>
  before.reduce((sum, pieces) => sum + inputTokens + pieces * tokensOfPiece, inputTokens);

/** In nano-yuan, of an answer after a turn that had so many pieces, or after none. */
export const priceOf = (pieces: number, before?: number): number =>
  (promptTokensOf(before === undefined ? [] : [before]) + pieces * tokensOfPiece * 2) * (nano / 1_000);
