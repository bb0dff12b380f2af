/**
 * What the requests of all dialects share: ids of tool calls as they go up, custom tools as functions, stop sequences, and
 * what the row sets. Dialects alone need it, so functions load it with them, later.
 */
import type { CanonicalCall, ChatMessage, ChatTool } from '../wire/canonical-call.ts';
import { fingerprint } from '../wire/ids.ts';
import { type CallIds, CannotCarry, type RequestSettings } from './dialect.ts';
import { asRecord, isRecord, parseJson, type JsonRecord } from '../wire/json.ts';
import { effortScale, type Quirks } from './quirks.ts';

const idForms = {
  max64: { pattern: /^.{1,64}$/s, length: 64 },
  max40: { pattern: /^.{1,40}$/s, length: 40 },
  alnum9: { pattern: /^[a-zA-Z0-9]{9}$/, length: 9 },
  word64: { pattern: /^[a-zA-Z0-9_-]{1,64}$/, length: 64 },
};
export type CallIdForm = keyof typeof idForms;

/**
 * Maps the ids of one request to ids that the upstream accepts, one to one: an id that fits stays, another becomes one
 * made of its fingerprint. An id's place depends only on the ids before it, so that a longer transcript, whose first
 * ids are the same, maps them the same. `ids`: in the order of the transcript.
 */
export function mapIds(ids: Iterable<string>, form: CallIdForm): Map<string, string> {
  const { pattern, length } = idForms[form];
  const used = new Set<string>();
  const mappedIds = new Map<string, string>();
  for (const id of ids) {
    if (mappedIds.has(id)) continue;
    let candidate = pattern.test(id) ? id : deriveId(id, 0, length);
    for (let salt = 1; used.has(candidate); salt += 1) candidate = deriveId(id, salt, length);
    used.add(candidate);
    mappedIds.set(id, candidate);
  }
  return mappedIds;
}

/** Letters and digits alone, so that every form accepts it. */
function deriveId(id: string, salt: number, length: number): string {
  const digits = fingerprint(`${salt}:${id}`) + fingerprint(`${id}:${salt}`);
  return length < 10 ? digits.slice(-length).padStart(length, '0') : `call${digits}`;
}

/**
 * The ids of tool calls as they go up: the vendor's own where this channel gave them, else the client's, mapped where
 * the vendor would refuse them. An id that an earlier call used already is another call's and becomes another id.
 */
export interface SentIds {
  calls(message: ChatMessage): readonly string[];
  /** The id of the call that a tool message answers. */
  result(message: ChatMessage): string;
}

export function mapCallIds(
  messages: readonly ChatMessage[],
  { callIds, form }: { callIds: CallIds; form: CallIdForm },
): SentIds {
  const numberRepeat = createRepeatNumbering();
  /** What the calls of the latest turn with a client's id are called, without those answered before another. */
  const open = new Map<string, string[]>();
  const calls = new Map<ChatMessage, string[]>();
  const results = new Map<ChatMessage, string>();
  for (const message of messages) {
    if (message.role === 'tool') {
      const id = message.tool_call_id ?? '';
      const left = open.get(id) ?? [];
      results.set(message, (left.length > 1 ? left.shift() : left[0]) ?? callIds.restoreVendorId(id));
    }
    const asked = (message.tool_calls ?? []).map((call, index) => call.id ?? `call_${index}`);
    for (const id of asked) open.set(id, []);
    const ids = asked.map((id) => {
      const own = numberRepeat(callIds.restoreVendorId(id));
      open.get(id)?.push(own);
      return own;
    });
    if (ids.length > 0) calls.set(message, ids);
  }
  const mappedIds = mapIds([...[...calls.values()].flat(), ...results.values()], form);
  const mapId = (id: string): string => mappedIds.get(id) ?? id;
  return {
    calls: (message) => (calls.get(message) ?? []).map(mapId),
    result: (message) => mapId(results.get(message) ?? ''),
  };
}

/** The names of calls in their order: one that came before gets the number of its use. */
function createRepeatNumbering(): (id: string) => string {
  const counts = new Map<string, number>();
  const used = new Set<string>();
  return (id) => {
    let count = (counts.get(id) ?? 0) + 1;
    let own = count === 1 ? id : `${id}_${count}`;
    while (used.has(own)) {
      count += 1;
      own = `${id}_${count}`;
    }
    counts.set(id, count);
    used.add(own);
    return own;
  };
}

// Custom tools, whose input is free text, for upstreams that know functions alone: the tool becomes a function with
// one string `input`, and its calls are converted back. Any dialect may use it.

export function toolNameOf(tool: ChatTool): string | undefined {
  const { name } = asRecord(tool.type === 'custom' ? tool['custom'] : tool.function);
  return typeof name === 'string' ? name : undefined;
}

/** The function that stands for a custom tool. Its grammar goes into the description. */
export function wrapTool(tool: ChatTool): ChatTool & { function: { name: string; parameters: JsonRecord } } {
  const { description, format } = asRecord(tool['custom']);
  const { definition, syntax } = asRecord(asRecord(format)['grammar']);
  const kind = typeof syntax === 'string' ? ` (${syntax})` : '';
  const words = [
    description,
    typeof definition === 'string' ? `The input must match this grammar${kind}:\n${definition}` : '',
  ];
  return {
    type: 'function',
    function: {
      name: toolNameOf(tool) ?? '',
      description: words.filter((word) => typeof word === 'string' && word !== '').join('\n\n'),
      parameters: {
        type: 'object',
        properties: { input: { type: 'string', description: 'The whole input of the tool, as plain text.' } },
        required: ['input'],
        additionalProperties: false,
      },
    },
  };
}

/** The arguments of a call of a wrapped tool. */
export const wrapInput = (input: string): string => JSON.stringify({ input });

/**
 * The input in the complete arguments of such a call. Some models choose another name for the one string, or write
 * the text without a wrapper: it is accepted as it is.
 */
export function unwrapInput(text: string): string {
  const value = parseJson(text);
  if (typeof value === 'string') return value;
  if (!isRecord(value)) return text;
  if (typeof value['input'] === 'string') return value['input'];
  const values = Object.values(value);
  const [only] = values;
  if (values.length === 0) return '';
  return values.length === 1 && typeof only === 'string' ? only : text;
}

// Efforts and sampling, as the upstream takes them.

/**
 * The effort to send for a requested one: the nearest lower that is known, below the lowest the lowest, for `none`, too:
 * a model that does not stop reasoning reasons more by default. Undefined: none is to be sent, as the upstream knows none.
 * For a requested effort outside the scale it is the highest; known ones outside the scale are sent only by name, unless
 * there are no others.
 */
export function chooseEffort(requested: string, known: readonly string[]): string | undefined {
  if (known.includes(requested)) return requested;
  const others = known.filter((effort) => effort !== 'none');
  const ranked = others.filter((effort) => rank(effort) >= 0).toSorted((a, b) => rank(a) - rank(b));
  if (requested === 'none') return ranked[0];
  const wanted = rank(requested);
  if (ranked.length === 0 || wanted < 0) return ranked.at(-1) ?? others.at(-1);
  return ranked.findLast((effort) => rank(effort) <= wanted) ?? ranked[0];
}

const rank = (effort: string): number => effortScale.indexOf(effort as (typeof effortScale)[number]);

/**
 * The sampling fields of a request that the upstream refuses. The value 1 is the default and refused by none.
 * @param effort the one that goes up
 */
export function findRefusedSampling(given: JsonRecord, { sampling }: Quirks, effort: unknown): string[] {
  const isSet = (field: string): boolean => typeof given[field] === 'number';
  if (sampling === 'one') return ['temperature', 'top_p'].filter(isSet).slice(1);
  if (sampling === 'any' || (sampling === 'without_reasoning' && effort === 'none')) return [];
  return ['temperature', 'top_p', 'top_k'].filter((field) => isSet(field) && given[field] !== 1);
}

// Stop sequences: which of them go up, and which the relay looks for in the answer.

/** More and longer ones than any vendor takes: what is held of an answer is as long as one. */
const watchedSequencesMax = 16;
const sequenceLengthMax = 256;

/**
 * The relay looks for all sequences, also for those that went up: some upstreams ignore the field. Throws CannotCarry for more or
 * longer ones than it can look for, unless all of them went up.
 * @param sentMax how many the dialect has room for
 */
export function splitStopSequences(
  { request: { stop }, stopField = 'stop' }: CanonicalCall,
  { quirks, omissions }: Pick<RequestSettings, 'quirks' | 'omissions'>,
  { sentMax, takes = () => true }: { sentMax: number; takes?: (sequence: string) => boolean },
): { sent: string[]; watched: readonly string[] | undefined } {
  const given = (typeof stop === 'string' ? [stop] : (stop ?? [])).filter((each) => each !== '');
  const isTaken = quirks.supportsStop && !omissions.has('stop');
  const sent = isTaken ? given.filter(takes).slice(0, sentMax) : [];
  const isWatchable =
    given.length <= watchedSequencesMax && given.every(({ length }) => length <= sequenceLengthMax);
  if (!isWatchable && sent.length < given.length) {
    const message = `This model takes at most ${watchedSequencesMax} stop sequences of ${sequenceLengthMax} characters.`;
    throw new CannotCarry(stopField, message);
  }
  return { sent, watched: isWatchable && given.length > 0 ? given : undefined };
}

/** What the row sets and drops; whether the answer is streamed is its word alone. Changes `body`. */
export function applyRowFields(body: JsonRecord, { set, drop, stream }: RequestSettings): void {
  Object.assign(body, set);
  for (const field of drop) delete body[field];
  delete body['stream'];
  if (stream) body['stream'] = true;
}
