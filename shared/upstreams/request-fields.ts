/**
 * Rules that the requests of the three chat dialects share: custom tools as functions, images, efforts, sampling, stop sequences.
 */
import type { CanonicalCall, ChatTool } from '../wire/canonical-call.ts';
import { asRecord, isRecord, parseJson, type JsonRecord } from '../wire/json.ts';
import { CannotCarry, type RequestSettings } from './dialect.ts';
import { effortWordOf, rankEffort, readEffort, type Quirks } from './quirks.ts';

// Custom tools, whose input is free text, for upstreams that only know functions: the tool becomes a function with one
// string `input`, and its calls are converted back.

export function toolNameOf(tool: ChatTool): string | undefined {
  const { name } = asRecord(tool.type === 'custom' ? tool['custom'] : tool.function);
  return typeof name === 'string' ? name : undefined;
}

/** The grammar of the tool goes into the description. */
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

/** Adds `properties` to an object's schema, because OpenAI refuses one without them [CLIProxyAPI 5707]. */
export function completeSchema(schema: JsonRecord): JsonRecord {
  const isWhole = schema['type'] !== 'object' || isRecord(schema['properties']);
  return isWhole ? schema : { ...schema, properties: {} };
}

export const wrapInput = (input: string): string => JSON.stringify({ input });

/**
 * Reads the input from complete arguments. Some models choose another name for the string, or write the text without a
 * wrapper: both are accepted.
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

// Images whose declared type does not match their bytes. OpenAI accepts them, Claude refuses them.

const imageStarts = [
  ['iVBORw0KGgo', 'image/png'],
  ['/9j/', 'image/jpeg'],
  ['R0lGOD', 'image/gif'],
  ['UklGR', 'image/webp'],
] as const;

/** Reads the type from the first bytes, or else takes the declared one. `image/jpg` is common, but not registered. */
export function imageTypeOf(base64: string, named: string): string {
  const found = imageStarts.find(([start]) => base64.startsWith(start));
  return found?.[1] ?? (named === 'image/jpg' ? 'image/jpeg' : named);
}

/** Corrects the type of a data URL. Never copies a correct one, because it may have megabytes. */
export function correctImageUrl(url: string): string {
  const [head = '', type = '', form = ''] =
    /^data:(image\/[^;,]+)((?:;[^,]*)?;base64,)/i.exec(url.slice(0, 200)) ?? [];
  const found = imageTypeOf(url.slice(head.length, head.length + 16), type.toLowerCase());
  return head === '' || found === type ? url : `data:${found}${form}${url.slice(head.length)}`;
}

// Efforts and sampling.

/**
 * The nearest lower effort that is known, or the lowest. For `none` also the lowest, because a model that cannot stop
 * reasoning reasons more by default. A word above the scale becomes the highest; a known one outside the scale is
 * sent only by name, unless there are no others.
 */
export function chooseEffort(asked: string, known: readonly string[]): string | undefined {
  const requested = effortWordOf(asked);
  if (known.includes(requested)) return requested;
  if (readEffort(requested) === undefined) return undefined;
  const others = known.filter((effort) => effort !== 'none');
  const ranked = others
    .filter((effort) => rankEffort(effort) >= 0)
    .toSorted((a, b) => rankEffort(a) - rankEffort(b));
  if (requested === 'none') return ranked[0];
  const wanted = rankEffort(requested);
  if (ranked.length === 0 || wanted < 0) return ranked.at(-1) ?? others.at(-1);
  return ranked.findLast((effort) => rankEffort(effort) <= wanted) ?? ranked[0];
}

/**
 * The value 1 is the default, which no upstream refuses.
 * @param effort the one that is sent
 */
export function findRefusedSampling(given: JsonRecord, { sampling }: Quirks, effort: unknown): string[] {
  const isSet = (field: string): boolean => typeof given[field] === 'number';
  if (sampling === 'one') return ['temperature', 'top_p'].filter(isSet).slice(1);
  if (sampling === 'any' || (sampling === 'without_reasoning' && effort === 'none')) return [];
  return ['temperature', 'top_p', 'top_k'].filter((field) => isSet(field) && given[field] !== 1);
}

// Stop sequences.

/** More and longer ones than any vendor accepts. The relay holds back as much of an answer as one is long. */
const watchedSequencesMax = 16;
const sequenceLengthMax = 256;

/**
 * The relay looks for all sequences, even those that were sent, because some upstreams ignore the field. Throws
 * CannotCarry for more or longer ones than it can look for, unless all were sent.
 * @param sentMax how many the dialect allows
 */
export function splitStopSequences(
  { request: { stop } }: CanonicalCall,
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
    throw new CannotCarry('stop', message);
  }
  return { sent, watched: isWatchable && given.length > 0 ? given : undefined };
}
