/** The upstream's answers in seeded stories: the last message sets the number of pieces and the time of each. */

const nano = 1_000_000_000;
/** Plausible counts for the texts; the relay would replace others by estimates. */
const tokensOfPiece = 7;
const inputTokens = 20;

export interface SlowAnswer {
  seed: number;
  gapMs: number;
  /** Each piece names the turn of the conversation that the upstream saw. */
  pieces: string[];
  promptTokens: number;
  completionTokens: number;
}

export const inputOf = (seed: number, pieces: number, gapMs: number): string =>
  `seed=${seed} pieces=${pieces} gap=${gapMs}`;

export const piecesOf = (count: number, turn = 1): string[] =>
  Array.from({ length: count }, (_, piece) => `piece ${piece} of turn ${turn} `);

/** @param body the upstream request */
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

/** @param before the pieces of earlier turns */
const promptTokensOf = (before: number[]): number =>
  before.reduce((sum, pieces) => sum + inputTokens + pieces * tokensOfPiece, inputTokens);

/** Price in nano-yuan of an answer after a turn with this many pieces, or after none. */
export const priceOf = (pieces: number, before?: number): number =>
  (promptTokensOf(before === undefined ? [] : [before]) + pieces * tokensOfPiece * 2) * (nano / 1_000);
