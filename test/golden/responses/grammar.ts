import { isDeepStrictEqual } from 'node:util';
import type { ResponseObject } from '../../../shared/endpoints/responses/response-object.ts';
import type { ReadEvent } from './read-events.ts';

/** A part of an item: of a message's content or a summary, or the input of a call. */
interface SeenPart {
  type: string;
  /** The sum of the deltas so far. */
  text: string;
  annotations: unknown[];
  logprobs: unknown[];
  textDone: boolean;
  done: boolean;
}

interface SeenItem {
  id: string;
  type: string;
  parts: SeenPart[];
  done: Record<string, unknown> | undefined;
}

/** The events of a part's text: the types of the item and the part, and the field with the complete text. */
const texts: Record<string, [item: string, part: string, field: string]> = {
  'response.output_text': ['message', 'output_text', 'text'],
  'response.refusal': ['message', 'refusal', 'refusal'],
  'response.reasoning_summary_text': ['reasoning', 'summary_text', 'text'],
  'response.function_call_arguments': ['function_call', 'input', 'arguments'],
  'response.custom_tool_call_input': ['custom_tool_call', 'input', 'input'],
};
/** The events that open and close parts: the type of the item, and the field with the part's number. */
const partsOf: Record<string, [item: string, index: string]> = {
  'response.content_part': ['message', 'content_index'],
  'response.reasoning_summary_part': ['reasoning', 'summary_index'],
};
const contentOf: Record<string, string> = { message: 'content', reasoning: 'summary' };

/**
 * Reads a whole Responses stream by its grammar: created in_progress (item event | in_progress)* (completed |
 * failed), numbers from 0 without gaps, dense indexes, one item open at a time, each with its deltas and its done. Throws
 * where the stream violates it. Returns the response that the deltas add up to.
 */
export function readByGrammar(events: readonly ReadEvent[]): ResponseObject {
  const items: SeenItem[] = [];
  const first = events[0]?.['response'] as ResponseObject;
  const last = events.at(-1);
  for (const [i, event] of events.entries()) {
    check(event.sequence_number === i, event, 'numbers go up by one from 0');
    if (i === 0) check(event.type === 'response.created', event, 'created is first');
    else if (i === 1) check(event.type === 'response.in_progress', event, 'in_progress is second');
    else if (event === last) check(/completed$|failed$/.test(event.type), event, 'the last event ends it');
    else if (event.type !== 'response.in_progress') readItemEvent(items, event);
    if (i < 2 || event.type === 'response.in_progress')
      check(isDeepStrictEqual(event['response'], first), event, 'a running response is the first one');
  }
  check(first.status === 'in_progress' && first.output.length === 0, events[0], 'it starts empty');
  const response = last?.['response'] as ResponseObject;
  check(response.id === first.id && response.created_at === first.created_at, last, 'one response');
  if (last?.type === 'response.failed') {
    check(response.status === 'failed' && response.error !== null, last, 'a failure tells its error');
    check(isDeepStrictEqual(last['error'], response.error), last, 'the error stands in both places');
    const done = items.flatMap((item) => (item.done ? [item.done] : []));
    check(isDeepStrictEqual(response.output, done), last, 'a failed response has the items that are done');
    return response;
  }
  check(
    items.every((item) => item.done),
    last,
    'each added item is done',
  );
  check(
    isDeepStrictEqual(
      response.output,
      items.map((item) => item.done),
    ),
    last,
    'output is the done items',
  );
  const cut = response.status === 'incomplete';
  check((response.incomplete_details !== null) === cut, last, 'an incomplete response says why');
  check(
    cut || response.output.every((item) => !('status' in item) || item.status === 'completed'),
    last,
    'all items are complete',
  );
  return { ...response, output: items.map(fromDeltas) as ResponseObject['output'] };
}

function check(holds: boolean, event: ReadEvent | undefined, rule: string): void {
  if (!holds) throw new Error(`${rule}: ${JSON.stringify(event)}`);
}

function readItemEvent(items: SeenItem[], event: ReadEvent): void {
  const at = event['output_index'] as number;
  if (event.type === 'response.output_item.added') {
    check(at === items.length, event, 'indexes are dense, in order of appearance');
    check(
      items.every(({ done }) => done),
      event,
      'one item is open at a time',
    );
    items.push(addedItem(items, event));
    return;
  }
  const item = items[at];
  if (!item || item.done) throw new Error(`the event is of no open item: ${JSON.stringify(event)}`);
  if (event.type === 'response.output_item.done') {
    const done = event['item'] as Record<string, unknown>;
    check(done['id'] === item.id && done['type'] === item.type, event, 'the done item is the added one');
    check(
      item.parts.every((part) => part.done),
      event,
      'first its content',
    );
    item.done = done;
    check(/^(completed|incomplete)$/.test(String(done['status'])), event, 'a done item has an end');
    check(isDeepStrictEqual(fromDeltas(item), done), event, 'the deltas are the item');
    return;
  }
  check(event['item_id'] === item.id, event, 'item_id and output_index agree');
  if (/_part\.(added|done)$/.test(event.type)) readPartEvent(item, event);
  else readContentEvent(item, event);
}

function addedItem(items: SeenItem[], event: ReadEvent): SeenItem {
  const { id, type, status, ...rest } = event['item'] as Record<string, string>;
  check(status === 'in_progress' && !items.some((item) => item.id === id), event, 'a new item runs');
  const content = contentOf[String(type)];
  const empty = content ?? (type === 'function_call' ? 'arguments' : 'input');
  check(rest[empty]?.length === 0, event, 'a new item is empty');
  return { id: String(id), type: String(type), parts: content ? [] : [newPart('input')], done: undefined };
}

const newPart = (type: string): SeenPart => ({
  type,
  text: '',
  annotations: [],
  logprobs: [],
  textDone: false,
  done: false,
});

function readPartEvent(item: SeenItem, event: ReadEvent): void {
  const [type, index] = partsOf[event.type.replace(/\.(added|done)$/, '')] ?? [];
  check(type === item.type, event, 'a part of its kind of item');
  const part = event['part'] as { type: string };
  const open = item.parts.at(-1);
  if (event.type.endsWith('.added')) {
    check(open === undefined || open.done, event, 'one part is open at a time');
    check(event[String(index)] === item.parts.length, event, 'parts are dense');
    item.parts.push(newPart(part.type));
    check(isDeepStrictEqual(part, partOf(newPart(part.type))), event, 'a new part is empty');
    return;
  }
  check(event[String(index)] === item.parts.length - 1, event, 'a part is done in its turn');
  check(open?.textDone === true && !open.done, event, 'the text of the part is done');
  check(isDeepStrictEqual(part, open && partOf(open)), event, 'the part has the text');
  if (open) open.done = true;
}

function readContentEvent(item: SeenItem, event: ReadEvent): void {
  const open = item.parts.at(-1);
  if (!open || open.textDone) throw new Error(`no part is open: ${JSON.stringify(event)}`);
  const index = { message: 'content_index', reasoning: 'summary_index' }[item.type];
  if (index) check(event[index] === item.parts.length - 1, event, 'the event is of the open part');
  if (event.type === 'response.output_text.annotation.added') {
    check(event['annotation_index'] === open.annotations.length, event, 'annotations are dense');
    open.annotations.push(event['annotation']);
    return;
  }
  const [itemType, partType, field] = texts[event.type.replace(/\.(delta|done)$/, '')] ?? [];
  check(itemType === item.type && partType === open.type, event, 'an event of the grammar, in its place');
  if (event.type.endsWith('.delta')) {
    check(event['delta'] !== '', event, 'a delta adds something');
    open.text += String(event['delta']);
    open.logprobs.push(...((event['logprobs'] as unknown[] | undefined) ?? []));
    return;
  }
  check(event[String(field)] === open.text, event, 'the deltas add up');
  check(isDeepStrictEqual(event['logprobs'] ?? [], open.logprobs), event, 'the logprobs add up');
  open.textDone = true;
  if (partType === 'input') open.done = true;
}

function partOf({ type, text, annotations, logprobs }: SeenPart): object {
  if (type === 'refusal') return { type, refusal: text };
  return type === 'summary_text' ? { type, text } : { type, text, annotations, logprobs };
}

/** Returns the item with its text replaced by the sum of the deltas. */
function fromDeltas({ type, parts, done }: SeenItem): object {
  const content = contentOf[type];
  if (content) return { ...done, [content]: parts.map(partOf) };
  return { ...done, [type === 'function_call' ? 'arguments' : 'input']: parts[0]?.text };
}
