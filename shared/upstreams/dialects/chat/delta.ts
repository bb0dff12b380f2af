/** Reads one delta, or a whole message, field by field. */
import type { UrlCitation } from '../../../wire/chat-response.ts';
import { asRecord, isRecord, listIn, recordsIn, textIn, type JsonRecord } from '../../../wire/json.ts';
import type { VendorCounts } from '../../usage-counts.ts';
import type { UpstreamError } from '../../exchange.ts';

/** What a delta says. Empty texts and lists: nothing. */
export interface DeltaReading {
  content: string;
  /** Reasoning in a field of its own, and the name of that field. */
  reasoning: string;
  reasoningField: 'reasoning_content' | 'reasoning';
  refusal: string;
  details: JsonRecord[];
  annotations: UrlCitation[];
  images: JsonRecord[];
  /** Pieces of calls. */
  calls: unknown[];
  /** The vendor's state of the turn. */
  extra: JsonRecord | undefined;
}

export function readDelta(source: JsonRecord): DeltaReading {
  const named = textOf(source['reasoning_content'], 'text');
  const other = textOf(source['reasoning'], 'text');
  const pieces = listIn(source['tool_calls']);
  const legacy = isRecord(source['function_call']) ? [{ index: 0, function: source['function_call'] }] : [];
  return {
    content: textOf(source['content'], 'text'),
    reasoning: named || other || textOf(source['content'], 'thinking'),
    reasoningField: named === '' && other !== '' ? 'reasoning' : 'reasoning_content',
    refusal: textOf(source['refusal'], 'text'),
    details: recordsIn(source['reasoning_details']),
    annotations: listIn(source['annotations']).flatMap(citation),
    images: listIn(source['images']).flatMap(image),
    calls: pieces.length > 0 ? pieces : legacy,
    extra: isRecord(source['extra_content']) ? source['extra_content'] : undefined,
  };
}

/** Text of a string or, as Mistral sends it, of a list of typed parts. */
function textOf(value: unknown, kind: 'text' | 'thinking'): string {
  if (typeof value === 'string') return kind === 'text' ? value : '';
  return recordsIn(value)
    .filter((part) => part['type'] === kind)
    .map((part) => textOf(part[kind], 'text'))
    .join('');
}

/** Addresses in the order in which the text names them by number, with the titles of the search results that say them. */
export function citationsOfEvent({ citations, search_results: results }: JsonRecord): UrlCitation[] {
  const titles = new Map(listIn(results).map((each) => [asRecord(each)['url'], asRecord(each)['title']]));
  return listIn(citations).flatMap((each) => {
    const cited = typeof each === 'string' ? { url: each, title: titles.get(each) } : each;
    return citation({ url_citation: cited });
  });
}

function citation(value: unknown): UrlCitation[] {
  const { url, title, start_index: start, end_index: end } = asRecord(asRecord(value)['url_citation']);
  if (typeof url !== 'string' || url === '') return [];
  const range = { start_index: numberIn(start), end_index: numberIn(end) };
  return [{ type: 'url_citation', url_citation: { url, title: textIn(title), ...range } }];
}

const numberIn = (value: unknown): number => (typeof value === 'number' ? value : 0);

function image(value: unknown): JsonRecord[] {
  const { url } = asRecord(asRecord(value)['image_url']);
  return typeof url === 'string' && url !== '' ? [{ type: 'image_url', image_url: { url } }] : [];
}

/**
 * The counts in an event: beside the choices, in the first choice (Moonshot) or under `x_groq`. A compatible server may
 * use any vendor's names, so they are read by name and not by vendor.
 */
export function countsOfEvent(event: JsonRecord): VendorCounts | undefined {
  const [choice] = listIn(event['choices']);
  const places = [event['usage'], asRecord(choice)['usage'], asRecord(event['x_groq'])['usage']];
  const usage = places.find(isRecord);
  return usage && countsOf(usage);
}

function countsOf(usage: JsonRecord): VendorCounts {
  const inputDetails = asRecord(usage['prompt_tokens_details'] ?? usage['input_tokens_details']);
  const outputDetails = asRecord(usage['completion_tokens_details'] ?? usage['output_tokens_details']);
  const lifetimes = asRecord(usage['cache_creation'] ?? inputDetails['cache_creation_token_details']);
  // Anthropic's names. Its own count of input leaves both out; gateways that add them keep the names.
  const { cache_read_input_tokens: read, cache_creation_input_tokens: written } = usage;
  const isNamedSo = typeof (read ?? written) === 'number';
  return {
    input: usage['prompt_tokens'] ?? usage['input_tokens'],
    output: usage['completion_tokens'] ?? usage['output_tokens'],
    total: usage['total_tokens'],
    reasoning: outputDetails['reasoning_tokens'] ?? usage['reasoning_tokens'],
    cached:
      inputDetails['cached_tokens'] ?? usage['prompt_cache_hit_tokens'] ?? usage['cached_tokens'] ?? read,
    written:
      inputDetails['cache_write_tokens'] ??
      inputDetails['cache_creation_tokens'] ??
      usage['cache_write_tokens'] ??
      written,
    writtenForMinutes: lifetimes['ephemeral_5m_input_tokens'],
    writtenForHour: lifetimes['ephemeral_1h_input_tokens'],
    cacheIsApart: isNamedSo && (usage['prompt_tokens'] === undefined || 'unsure'),
  };
}

const reasonsMax = 8;
const reasonPattern = /^[A-Za-z0-9_.-]{1,100}$/;

/** OpenAI's error object, or one of the shapes that servers behind compatible upstreams use. */
export function chatError(body: unknown): UpstreamError | undefined {
  // Some upstreams wrap the error in a list.
  const whole = asRecord(firstOf(body));
  const { message, detail } = whole;
  const error = firstOf(whole['error']);
  if (isRecord(error)) return readError(error);
  if (typeof error === 'string') return readError({ ...whole, message: error });
  if (typeof message === 'string') return readError(whole);
  if (typeof detail === 'string') return { message: detail };
  return detailError(detail) ?? detailError(asRecord(message)['detail']);
}

/** The first of the faults that validating servers list, each with the path of its field in `loc`. */
function detailError(detail: unknown): UpstreamError | undefined {
  if (!Array.isArray(detail)) return undefined;
  const { msg, loc } = asRecord(detail[0]);
  const path = Array.isArray(loc) ? loc.filter((step) => step !== 'body').join('.') : undefined;
  return { message: msg, ...(path && { param: path }) };
}

/**
 * The error in an event of an answer with status 200. Some servers send the error itself,
 * marked by its type.
 */
export function errorOfEvent(event: JsonRecord): UpstreamError | undefined {
  const marked = event['object'] === 'error' || event['type'] === 'error';
  if (!event['error'] && !(marked && !Array.isArray(event['choices']))) return undefined;
  return chatError(event) ?? {};
}

/** Codes stay numbers where they are: Google's and others' repeat the status there and say the rest in `status`. */
function readError(error: JsonRecord): UpstreamError {
  const { message, type, status, code, param, details } = error;
  const found = listIn(details).map((detail) => textIn(asRecord(detail)['reason']));
  const reasons = found.filter((reason) => reasonPattern.test(reason)).slice(0, reasonsMax);
  return {
    message,
    type: type ?? (typeof status === 'string' ? status : undefined),
    code,
    param,
    ...(reasons.length > 0 && { reasons }),
  };
}

const firstOf = (value: unknown): unknown => (Array.isArray(value) ? value[0] : value);
