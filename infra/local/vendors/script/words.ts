/**
 * The words of the last user text that steer every double. Whole words, in any case, in its first 300
 * characters (`turns=` anywhere), since agents append long reminders that name such words by chance:
 *
 * - `turns=5`: five turns that call tools before the answer; default 1, at most 50
 * - `three`, `in parallel`: three calls in each such turn
 * - `call NAME INPUT`, on a line of its own: the first such line is what the first turn calls, the second the second;
 *   `turns` is then the number of lines. INPUT is JSON: arguments, or a text for a tool that takes one
 * - `explain`: a sentence before the calls
 * - `interleave`: the model thinks again before each call, where the vendor can
 * - `redacted`: thinking is redacted, where the vendor can
 * - `cite`: the answer has an annotation, where the vendor can
 * - `long`: an answer of 400 words
 * - `refuse`: the model refuses
 * - `pause`: the turn is paused, where the vendor can
 * - `overflow`: the answer ends with the context window, where the vendor can
 * - `overload`, `quota`, `throttle`, `window`: refused with the vendor's error for it: overloaded, account
 *   empty, too many requests, context length exceeded
 * - `overlong`: a stream with status 200 whose first event is the error for a context that is too long
 * - `lie=NAME`: the usage is another one than the true one; the names are in `lies.ts`
 * - `retry-after=VALUE`: what the header of `throttle` says
 * - `cut`: an error in mid-stream; `hang up`: the connection breaks there; `silence`: nothing more comes;
 *   `mute`: nothing comes after the headers
 */
export type SteeringWord =
  | 'explain'
  | 'interleave'
  | 'redacted'
  | 'cite'
  | 'long'
  | 'refuse'
  | 'pause'
  | 'overflow'
  | 'overlong'
  | Failure;

/** Failures before the first byte, then those in mid-stream. */
export type Failure = EarlyFailure | LateFailure;
export type EarlyFailure = 'overload' | 'quota' | 'throttle' | 'window';
export type LateFailure = 'cut' | 'hang up' | 'silence' | 'mute';

const early: EarlyFailure[] = ['overload', 'quota', 'throttle', 'window'];
const late: LateFailure[] = ['cut', 'hang up', 'silence', 'mute'];

const reach = 300;

export const asks = (said: string, word: SteeringWord): boolean =>
  new RegExp(String.raw`\b${word}\b`, 'i').test(said.slice(0, reach));

export const earlyFailureIn = (said: string): EarlyFailure | undefined =>
  early.find((word) => asks(said, word));

export const lateFailureIn = (said: string): LateFailure | undefined => late.find((word) => asks(said, word));

const turnsMax = 50;

export const callingTurnsIn = (said: string): number =>
  Math.min(wantedCallsIn(said).length || Number(/\bturns=(\d+)/i.exec(said)?.[1] ?? 1), turnsMax);

export interface WantedCall {
  name: string;
  /** JSON. */
  input: string;
}

/** The calls that the text spells out, one for each turn. */
export const wantedCallsIn = (said: string): WantedCall[] =>
  [...said.matchAll(/^call (\S+) (["{].*["}])\s*$/gm)].map(([, name = '', input = '']) => ({ name, input }));

export const callsPerTurnIn = (said: string): number =>
  /\b(three|in parallel)\b/i.test(said.slice(0, reach)) ? 3 : 1;

export const retryAfterIn = (said: string): string | undefined => /\bretry-after=([^\n]+)/i.exec(said)?.[1];
