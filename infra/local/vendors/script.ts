/** The scripted model behind every double: what it looks at, the words that steer it, what it answers, and what that counts. */
import { hashSha256, type VendorRefusal, type VendorReply } from './vendor.ts';

/** The part of a request that the scripted model reads, in any dialect. */
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
  /** All that the model reads, as JSON. */
  whole: () => string;
}

export interface ScriptTool {
  name: string;
  parameters?: JsonSchema;
  /** Takes free text instead of JSON. */
  custom?: boolean;
  namespace?: string;
}

export interface JsonSchema {
  type?: string | string[];
  properties?: Record<string, JsonSchema>;
  required?: string[];
  items?: JsonSchema;
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  anyOf?: JsonSchema[];
  minimum?: number;
}

export interface ModelTurn {
  thinking: string;
  text: string;
  calls: ScriptCall[];
  finish: 'stop' | 'calls' | 'length' | 'refusal';
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

/** A call of a model, with what its vendor's server says in its own way. */
export interface AskedTurn {
  transcript: Transcript;
  streams: boolean;
  thinks: boolean;
  /** The most tokens of the answer. */
  limit: number;
  refuse: (refusal: VendorRefusal) => VendorReply;
  failures: EarlyFailures;
  /** The answer to `cut` without a stream. */
  brokenOff: VendorRefusal;
  /** Ends a stream that is cut. */
  streamError: string | Uint8Array;
  /** A stream that starts as if all were well, and whose first event is the error. */
  overlongStream(): VendorReply;
  reply(turn: ModelTurn): VendorReply;
  notes(): string[];
}

/** The answer of the scripted model, or the failure that the user's text asks for. */
export function answerAsAsked(asked: AskedTurn): VendorReply {
  const { transcript, streams, refuse, failures } = asked;
  const { said } = transcript;
  const early = earlyFailures.find((word) => asks(said, word));
  if (early) return { ...refuse(refusalOf(failures[early])), rule: early };
  if (asks(said, 'overlong')) return streams ? asked.overlongStream() : refuse(refusalOf(failures.window));
  const late = lateFailures.find((word) => asks(said, word));
  if (late === 'cut' && !streams) return refuse(asked.brokenOff);
  const scripted = playTurn(transcript);
  const turn = limitTurn(asked.thinks ? scripted : { ...scripted, thinking: '' }, asked.limit);
  return { ...failLate(asked.reply(turn), late, asked.streamError), notes: asked.notes() };
}

/**
 * Equal transcripts get equal turns. While tools are declared and fewer than the wanted turns have called them, the model
 * calls the tool that the text names, else the first one; then it answers with a text that names the results. A forced or
 * required tool is called whatever was called before, as models do.
 */
export function playTurn(transcript: Transcript): ModelTurn {
  const { said, turns: step, schema } = transcript;
  const question = hashSha256(said).slice(0, 8);
  const wanted = listWantedCalls(said)[step];
  const tool = chooseTool(transcript, wanted);
  if (asks(said, 'refuse'))
    return turnOf({ step, question, text: "I'm sorry, I can't help with that.", finish: 'refusal' });
  if (tool === undefined) {
    const answer = schema ? makeArguments(schema, said) : answerTo(transcript);
    return turnOf({ step, question, ...cutAtStop(answer, transcript.stops), finish: 'stop' });
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

function chooseTool(
  { tools, choice, said, turns }: Transcript,
  wanted: WantedCall | undefined,
): ScriptTool | undefined {
  if (choice === 'none' || asksSummary(said)) return undefined;
  if (typeof choice === 'object') return tools.find(({ name }) => name === choice.name);
  if (choice === 'auto' && turns >= countCallingTurns(said)) return undefined;
  const text = wanted?.name ?? said;
  return tools.find(({ name }) => name === text) ?? tools.find(({ name }) => text.includes(name)) ?? tools[0];
}

function callOf(
  { name, parameters, custom = false, namespace }: ScriptTool,
  said: string,
  wanted: WantedCall | undefined,
): ScriptCall {
  const free = `free text of ${name}\nsecond line`;
  const input = wanted ? readWantedInput(wanted, custom) : custom ? free : makeArguments(parameters, said);
  return { name, ...(namespace !== undefined && { namespace }), input, custom };
}

/** A text for a tool that takes JSON is its property `input`, as relays declare tools that take text. */
function readWantedInput({ input }: WantedCall, custom: boolean): string {
  if (!input.startsWith('"')) return input;
  return custom ? (JSON.parse(input) as string) : `{"input":${input}}`;
}

/** Bytes that a careless copy loses: doubled spaces, a line separator, a pair of surrogates, a last line end. */
export const thoughtOf = (step: number, calls: ScriptCall[]): string =>
  `Step ${step + 1}:  ${calls.length === 0 ? 'I answer' : `I call ${calls[0]?.name} ×${calls.length}`}\u2028 “\\n” 🧭\n`;

const turnOf = ({
  calls = [],
  ...turn
}: Omit<ModelTurn, 'thinking' | 'calls'> & { calls?: ScriptCall[] }): ModelTurn => ({
  ...turn,
  calls,
  thinking: thoughtOf(turn.step, calls),
});

export function cutAtStop(text: string, stops: string[] = []): { text: string; stoppedBy?: string } {
  const [first] = stops
    .filter((stop) => stop !== '' && text.includes(stop))
    .toSorted((one, other) => text.indexOf(one) - text.indexOf(other));
  return first === undefined ? { text } : { text: text.slice(0, text.indexOf(first)), stoppedBy: first };
}

/** The words by which clients and relays ask for a summary of a conversation. */
export const asksSummary = (said: string): boolean => /\bwrite that summary\b/i.test(said.slice(0, reach));

/** Facts to remember: `fact-` followed by letters or digits. */
export const findFacts = (text: string): string => [...new Set(text.match(/\bfact-[a-z0-9]+/g))].join(', ');

function answerTo({ said, results, whole }: Transcript): string {
  if (asksSummary(said)) return `Summary: ${findFacts(whole())}.`;
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
 * - `long`: an answer of 400 words
 * - `refuse`: the model refuses
 * - `overload`, `quota`, `throttle`, `window`: refused with the vendor's error for it: overloaded, account
 *   empty, too many requests, context length exceeded
 * - `overlong`: a stream with status 200 whose first event is the error for a context that is too long
 * - `cut`: an error in mid-stream; `hang up`: the connection breaks there
 */
export type SteeringWord =
  | 'explain'
  | 'interleave'
  | 'redacted'
  | 'long'
  | 'refuse'
  | 'overlong'
  | EarlyFailure
  | LateFailure;

/** Before the first byte. */
type EarlyFailure = (typeof earlyFailures)[number];
const earlyFailures = ['overload', 'quota', 'throttle', 'window'] as const;
export type EarlyFailures = Record<
  EarlyFailure,
  readonly [status: number, message: string, more?: Pick<VendorRefusal, 'type' | 'code' | 'param'>]
>;
export const refusalOf = ([status, message, more]: EarlyFailures[EarlyFailure]): VendorRefusal => ({
  status,
  message,
  ...more,
});
/** In mid-stream. */
type LateFailure = (typeof lateFailures)[number];
const lateFailures = ['cut', 'hang up'] as const;

const reach = 300;

export const asks = (said: string, word: SteeringWord): boolean =>
  new RegExp(String.raw`\b${word}\b`, 'i').test(said.slice(0, reach));

const turnsMax = 50;

const countCallingTurns = (said: string): number =>
  Math.min(listWantedCalls(said).length || Number(/\bturns=(\d+)/i.exec(said)?.[1] ?? 1), turnsMax);

interface WantedCall {
  name: string;
  /** JSON. */
  input: string;
}

/** The calls that the text spells out, one for each turn. */
const listWantedCalls = (said: string): WantedCall[] =>
  [...said.matchAll(/^call (\S+) (["{].*["}])\s*$/gm)].map(([, name = '', input = '']) => ({ name, input }));

const callsPerTurnIn = (said: string): number =>
  /\b(three|in parallel)\b/i.test(said.slice(0, reach)) ? 3 : 1;

/** The reply as the user's text wants it to fail: half of it, then `errorFrame` or a broken connection. */
function failLate(
  reply: VendorReply,
  failure: LateFailure | undefined,
  errorFrame: string | Uint8Array,
): VendorReply {
  if (failure === undefined) return reply;
  const half = reply.frames.slice(0, Math.ceil(reply.frames.length / 2));
  return failure === 'cut'
    ? { ...reply, frames: [...half, errorFrame] }
    : { ...reply, frames: half, ending: 'destroyed' };
}

/** Arguments (JSON text) that match a schema, made from the user's text. */
export const makeArguments = (schema: JsonSchema | undefined, said: string): string =>
  JSON.stringify(schema === undefined ? {} : objectOf(schema, said, 0));

const depthMax = 6;

function objectOf(
  { properties = {}, required }: JsonSchema,
  said: string,
  depth: number,
): Record<string, unknown> {
  const wanted = required ?? Object.keys(properties);
  return Object.fromEntries(
    wanted.map((name) => [name, valueOf(properties[name] ?? {}, { name, said, depth: depth + 1 })]),
  );
}

interface Place {
  /** Name of the property whose value is made. */
  name: string;
  said: string;
  depth: number;
}

function valueOf(schema: JsonSchema, place: Place): unknown {
  const { name, said, depth } = place;
  if (schema.const !== undefined) return schema.const;
  if (schema.enum !== undefined)
    return schema.enum.find((choice) => said.includes(String(choice))) ?? schema.enum[0];
  if (schema.default !== undefined) return schema.default;
  if (depth > depthMax) return null;
  if (schema.anyOf?.[0]) return valueOf(schema.anyOf[0], { ...place, depth: depth + 1 });
  switch ([schema.type ?? []].flat()[0] ?? 'string') {
    case 'object':
      return objectOf(schema, said, depth);
    case 'array':
      return [valueOf(schema.items ?? {}, { ...place, depth: depth + 1 })];
    case 'boolean':
      return true;
    case 'number':
    case 'integer':
      return Number(/-?\d+/.exec(said)?.[0] ?? schema.minimum ?? 1);
    case 'null':
      return null;
    default:
      return makeText(name, said);
  }
}

function makeText(name: string, said: string): string {
  if (/city|place|location|country/i.test(name))
    return /\b(?:in|at|for) (\p{Lu}\p{L}+)/u.exec(said)?.[1] ?? 'Paris';
  // Coding agents run this in a shell, so it must not contain the user's text.
  if (/^(cmd|command)$/i.test(name)) return 'ls';
  if (/date|day/i.test(name)) return '2026-01-31';
  return said;
}

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
export const countPromptTokens = (text: string): number => Math.ceil(text.length / 4);

/** Up to four characters of a word, with the space before them, are a token of an answer; joined they are the text. */
export const wordsOf = (text: string): string[] => text.match(/\s*\S{1,4}\s*$|\s*\S{1,4}|\s+$/gu) ?? [];

export const callTokens = ({ input }: ScriptCall): number => 5 + Math.ceil(input.length / 4);

/** Pieces of some characters that never part a pair of surrogates. */
export function piecesOf(text: string, size = 7): string[] {
  const characters = Array.from(text);
  const count = Math.ceil(characters.length / size);
  return Array.from({ length: count }, (_, index) =>
    characters.slice(index * size, (index + 1) * size).join(''),
  );
}

/** Tokens of an answer, and those of them spent on thinking. */
export const countOutput = (turn: ModelTurn): Pick<Counts, 'output' | 'thinking'> => ({
  output: countOutputTokens(turn),
  thinking: wordsOf(turn.thinking).length,
});

const countOutputTokens = ({ thinking, text, calls }: ModelTurn): number =>
  wordsOf(thinking).length + wordsOf(text).length + calls.reduce((sum, call) => sum + callTokens(call), 0);

/**
 * The turn as far as `limit` tokens go: thinking first, then text, then calls, of which the last may be cut
 * inside its input.
 */
function limitTurn(turn: ModelTurn, limit: number): ModelTurn {
  if (countOutputTokens(turn) <= limit) return turn;
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

/** Hash of the first part, of the first two, and so on: equal hashes are equal prefixes. */
export function prefixHashes(scope: string, parts: string[]): string[] {
  let hash = hashSha256(scope);
  return parts.map((part) => (hash = hashSha256(`${hash}\n${part}`)));
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

  /** The tokens of the prompt, and of the leading parts that were sent before. Remembers all of them. */
  promptCounts(scope: string, parts: string[]): { total: number; seen: number } {
    const hashes = prefixHashes(scope, parts);
    const fresh = hashes.findIndex((hash) => !this.has(hash));
    this.add(hashes);
    const total = countPromptTokens(parts.join(''));
    const seen = countPromptTokens(parts.slice(0, fresh === -1 ? parts.length : fresh).join(''));
    // The last token of a prompt is never read from a cache.
    return { total, seen: Math.min(seen, total - 1) };
  }
}
