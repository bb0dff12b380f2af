import { createHash } from 'node:crypto';
import { argumentsFor, type JsonSchema } from '../demo/upstream.ts';

/** What the scripted model looks at, whatever the vendor's language. */
export interface Transcript {
  /** The last user text. Texts beside tool results are not one. */
  said: string;
  /** Turns with calls after it. */
  turns: number;
  /** Their results, in order. */
  results: { name: string; text: string }[];
  tools: ScriptTool[];
  choice: 'auto' | 'none' | 'required' | { name: string };
  /** At most one call a turn. */
  single?: boolean;
  /** Texts that end the answer before them. */
  stops?: string[];
  /** The schema of the answer, if the request sets one. */
  schema?: JsonSchema;
}

export interface ScriptTool {
  name: string;
  parameters?: JsonSchema;
  /** Takes free text instead of JSON. */
  custom?: boolean;
  namespace?: string;
}

/** One turn of the model. */
export interface Turn {
  thinking: string;
  text: string;
  calls: ScriptCall[];
  finish: 'stop' | 'calls' | 'length' | 'refusal' | 'pause';
  /** Number of calling turns before this one. */
  step: number;
  /** The text that ended it. */
  stoppedBy?: string;
  /** Tells this question's calls from those of others: eight digits of [0-9a-f]. */
  question: string;
}

export interface ScriptCall {
  name: string;
  /** JSON text, or free text of a custom tool. */
  input: string;
  custom: boolean;
  namespace?: string;
}

/**
 * Equal transcripts get equal turns. While tools are declared and fewer than the wanted turns have called them
 * (`words.ts`), the model calls the tool that the text names, else the first one; then it answers with a text
 * that names the results. A forced or required tool is called whatever was called before, as models do.
 */
export function scriptedTurn(transcript: Transcript): Turn {
  const { said, turns: step, schema } = transcript;
  const question = createHash('sha256').update(said).digest('hex').slice(0, 8);
  const wanted = wantedCallsIn(said)[step];
  const tool = toolToCall(transcript, wanted);
  if (asks(said, 'refuse'))
    return turnOf({ step, question, text: "I'm sorry, I can't help with that.", finish: 'refusal' });
  if (asks(said, 'pause') && step === 0)
    return turnOf({ step, question, text: 'I go on in a moment.', finish: 'pause' });
  if (tool === undefined) {
    const answer = schema ? argumentsFor(schema, said) : answerTo(transcript);
    return turnOf({ step, question, ...beforeStop(answer, transcript.stops ?? []), finish: 'stop' });
  }
  const count = transcript.single ? 1 : callsPerTurnIn(said);
  const text = asks(said, 'explain') ? `I ask ${tool.name}.` : '';
  return turnOf({
    step,
    question,
    text,
    calls: Array.from({ length: count }, () => callOf(tool, said, wanted)),
    finish: 'calls',
  });
}

function toolToCall(
  { tools, choice, said, turns }: Transcript,
  wanted: WantedCall | undefined,
): ScriptTool | undefined {
  if (choice === 'none') return undefined;
  if (typeof choice === 'object') return tools.find(({ name }) => name === choice.name);
  if (choice === 'auto' && turns >= callingTurnsIn(said)) return undefined;
  const text = wanted?.name ?? said;
  return tools.find(({ name }) => name === text) ?? tools.find(({ name }) => text.includes(name)) ?? tools[0];
}

function callOf(
  { name, parameters, custom = false, namespace }: ScriptTool,
  said: string,
  wanted: WantedCall | undefined,
): ScriptCall {
  const free = `free text of ${name}\nsecond line`;
  const input = wanted ? wantedInput(wanted, custom) : custom ? free : argumentsFor(parameters, said);
  return { name, ...(namespace !== undefined && { namespace }), input, custom };
}

/** A text for a tool that takes JSON is its property `input`, as relays declare tools that take text. */
function wantedInput({ input }: WantedCall, custom: boolean): string {
  if (!input.startsWith('"')) return input;
  return custom ? (JSON.parse(input) as string) : `{"input":${input}}`;
}

/** Bytes that a careless copy loses: doubled spaces, a line separator, a pair of surrogates, a last line end. */
export const thoughtOf = (step: number, calls: ScriptCall[]): string =>
  `Step ${step + 1}:  ${calls.length === 0 ? 'I answer' : `I call ${calls[0]?.name} ×${calls.length}`}\u2028 “\\n” 🧭\n`;

const turnOf = ({
  calls = [],
  ...turn
}: Omit<Turn, 'thinking' | 'calls'> & { calls?: ScriptCall[] }): Turn => ({
  ...turn,
  calls,
  thinking: thoughtOf(turn.step, calls),
});

function beforeStop(text: string, stops: string[]): { text: string; stoppedBy?: string } {
  const [first] = stops
    .filter((stop) => stop !== '' && text.includes(stop))
    .toSorted((one, other) => text.indexOf(one) - text.indexOf(other));
  return first === undefined ? { text } : { text: text.slice(0, text.indexOf(first)), stoppedBy: first };
}

function answerTo({ said, results }: Transcript): string {
  if (asks(said, 'long')) return Array.from({ length: 400 }, (_, index) => `word${index + 1}`).join(' ');
  if (results.length === 0) return `You said: "${said}".`;
  return `The tools answered: ${results.map(({ name, text }) => `${name}: ${text}`).join('; ')}.`;
}

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
type SteeringWord =
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
type Failure = EarlyFailure | LateFailure;
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

const callingTurnsIn = (said: string): number =>
  Math.min(wantedCallsIn(said).length || Number(/\bturns=(\d+)/i.exec(said)?.[1] ?? 1), turnsMax);

interface WantedCall {
  name: string;
  /** JSON. */
  input: string;
}

/** The calls that the text spells out, one for each turn. */
const wantedCallsIn = (said: string): WantedCall[] =>
  [...said.matchAll(/^call (\S+) (["{].*["}])\s*$/gm)].map(([, name = '', input = '']) => ({ name, input }));

const callsPerTurnIn = (said: string): number =>
  /\b(three|in parallel)\b/i.test(said.slice(0, reach)) ? 3 : 1;

export const retryAfterIn = (said: string): string | undefined => /\bretry-after=([^\n]+)/i.exec(said)?.[1];

/** Counts of one answer. What is read from the cache and written to it is not in `input`. */
export interface Counts {
  input: number;
  cacheRead: number;
  cacheWrite5m: number;
  cacheWrite1h: number;
  output: number;
  /** The part of `output` that the model thought. */
  thinking: number;
}

/** Four characters are a token of a prompt. */
export const promptTokens = (text: string): number => Math.ceil(text.length / 4);

/** Up to four characters of a word, with the space before them, are a token of an answer; joined they are the text. */
export const wordsOf = (text: string): string[] => text.match(/\s*\S{1,4}\s*$|\s*\S{1,4}|\s+$/gu) ?? [];

const callTokens = ({ input }: ScriptCall): number => 5 + Math.ceil(input.length / 4);

/** Pieces of some characters that never part a pair of surrogates. */
export function piecesOf(text: string, size = 7): string[] {
  const characters = Array.from(text);
  const count = Math.ceil(characters.length / size);
  return Array.from({ length: count }, (_, index) =>
    characters.slice(index * size, (index + 1) * size).join(''),
  );
}

export const outputTokens = ({ thinking, text, calls }: Turn): number =>
  wordsOf(thinking).length + wordsOf(text).length + calls.reduce((sum, call) => sum + callTokens(call), 0);

/**
 * The turn as far as `limit` tokens go: thinking first, then text, then calls, of which the last may be cut
 * inside its input.
 */
export function limited(turn: Turn, limit: number): Turn {
  if (outputTokens(turn) <= limit) return turn;
  const thought = wordsOf(turn.thinking).slice(0, limit);
  const words = wordsOf(turn.text).slice(0, limit - thought.length);
  let left = limit - thought.length - words.length;
  const calls: ScriptCall[] = [];
  for (const call of turn.calls) {
    if (left < 5) break;
    calls.push({ ...call, input: call.input.slice(0, 4 * (left - 5)) });
    left -= callTokens(call);
  }
  return { ...turn, thinking: thought.join(''), text: words.join(''), calls, finish: 'length' };
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Hash of the first part, of the first two, and so on: equal hashes are equal prefixes. */
export function prefixHashes(scope: string, parts: string[]): string[] {
  let hash = sha256(scope);
  return parts.map((part) => (hash = sha256(`${hash}\n${part}`)));
}

const entriesMax = 10_000;

/** Remembers prefixes of prompts, as a vendor's cache does. It never expires: doubles know no time. */
export class PrefixMemory {
  readonly #seen = new Set<string>();

  has(hash: string): boolean {
    return this.#seen.has(hash);
  }

  add(hashes: string[]): void {
    for (const hash of hashes) this.#seen.add(hash);
    for (const oldest of this.#seen) {
      if (this.#seen.size <= entriesMax) return;
      this.#seen.delete(oldest);
    }
  }

  /** How many leading parts were sent before. Remembers all of them. */
  countSeen(scope: string, parts: string[]): number {
    const hashes = prefixHashes(scope, parts);
    const fresh = hashes.findIndex((hash) => !this.has(hash));
    this.add(hashes);
    return fresh === -1 ? parts.length : fresh;
  }
}
