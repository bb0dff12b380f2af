/** Reads one delta, or a whole message, field by field. */
import type { UrlCitation } from '../../../wire/chat-response.ts';
import { asRecord, isRecord, type JsonRecord } from '../../../wire/json-record.ts';

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
  const pieces = listOf(source['tool_calls']);
  const legacy = isRecord(source['function_call']) ? [{ index: 0, function: source['function_call'] }] : [];
  return {
    content: textOf(source['content'], 'text'),
    reasoning: named || other || textOf(source['content'], 'thinking'),
    reasoningField: named === '' && other !== '' ? 'reasoning' : 'reasoning_content',
    refusal: textOf(source['refusal'], 'text'),
    details: listOf(source['reasoning_details']).filter(isRecord),
    annotations: listOf(source['annotations']).flatMap(citation),
    images: listOf(source['images']).flatMap(image),
    calls: pieces.length > 0 ? pieces : legacy,
    extra: isRecord(source['extra_content']) ? source['extra_content'] : undefined,
  };
}

/** Text of a string or, as Mistral sends it, of a list of typed parts. */
function textOf(value: unknown, kind: 'text' | 'thinking'): string {
  if (typeof value === 'string') return kind === 'text' ? value : '';
  return listOf(value)
    .filter(isRecord)
    .filter((part) => part['type'] === kind)
    .map((part) => textOf(part[kind], 'text'))
    .join('');
}

/** Addresses in the order in which the text names them by number, with the titles of the search results that say them. */
export function citationsOfEvent({ citations, search_results: results }: JsonRecord): UrlCitation[] {
  const titles = new Map(listOf(results).map((each) => [asRecord(each)['url'], asRecord(each)['title']]));
  return listOf(citations).flatMap((each) => {
    const cited = typeof each === 'string' ? { url: each, title: titles.get(each) } : each;
    return citation({ url_citation: cited });
  });
}

function citation(value: unknown): UrlCitation[] {
  const { url, title, start_index: start, end_index: end } = asRecord(asRecord(value)['url_citation']);
  if (typeof url !== 'string' || url === '') return [];
  return [
    {
      type: 'url_citation',
      url_citation: {
        url,
        title: typeof title === 'string' ? title : '',
        start_index: typeof start === 'number' ? start : 0,
        end_index: typeof end === 'number' ? end : 0,
      },
    },
  ];
}

function image(value: unknown): JsonRecord[] {
  const { url } = asRecord(asRecord(value)['image_url']);
  return typeof url === 'string' && url !== '' ? [{ type: 'image_url', image_url: { url } }] : [];
}

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
