import { isDeepStrictEqual } from 'node:util';
import type { ResponseObject } from '../../../shared/endpoints/responses/answer/responses-response.ts';
import type { ReadEvent } from './read-events.ts';

interface SeenItem {
  id: string;
  type: string;
  /** What the deltas so far add up to. */
  text: string;
  /** The part of a message, or the arguments of a call. */
  inner: 'none' | 'open' | 'done';
  partDone: boolean;
  done: Record<string, unknown> | undefined;
}

const deltaOf: Record<string, string> = {
  'response.output_text.delta': 'message',
  'response.function_call_arguments.delta': 'function_call',
  'response.custom_tool_call_input.delta': 'custom_tool_call',
};
const doneOf: Record<string, [type: string, field: string]> = {
  'response.output_text.done': ['message', 'text'],
  'response.function_call_arguments.done': ['function_call', 'arguments'],
  'response.custom_tool_call_input.done': ['custom_tool_call', 'input'],
};

/**
 * Reads a whole Responses stream by its grammar: created in_progress (item event | in_progress)* (completed |
 * failed), numbers from 0 without gaps, dense indexes, each added item with its deltas and its done. Throws where
 * the stream breaks it. Returns the response as the deltas alone tell it.
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
  check(cut || response.output.every((item) => item.status === 'completed'), last, 'all items are complete');
  return { ...response, output: items.map(fromDeltas) as ResponseObject['output'] };
}

function check(holds: boolean, event: ReadEvent | undefined, rule: string): void {
  if (!holds) throw new Error(`${rule}: ${JSON.stringify(event)}`);
}

function readItemEvent(items: SeenItem[], event: ReadEvent): void {
  const at = event['output_index'] as number;
  if (event.type === 'response.output_item.added') {
    const { id, type, status, ...rest } = event['item'] as Record<string, string>;
    check(at === items.length, event, 'indexes are dense, in order of appearance');
    check(status === 'in_progress' && !items.some((item) => item.id === id), event, 'a new item runs');
    const empty = type === 'message' ? 'content' : type === 'function_call' ? 'arguments' : 'input';
    check(rest[empty]?.length === 0, event, 'a new item is empty');
    check(
      items.every(({ type: other, done }) => other !== 'message' || done),
      event,
      'no item joins a message',
    );
    const inner = type === 'message' ? 'none' : 'open';
    items.push({ id: String(id), type: String(type), text: '', inner, partDone: false, done: undefined });
    return;
  }
  const item = items[at];
  if (!item || item.done) throw new Error(`the event is of no open item: ${JSON.stringify(event)}`);
  if (event.type === 'response.output_item.done') {
    const done = event['item'] as Record<string, unknown>;
    check(done['id'] === item.id && done['type'] === item.type, event, 'the done item is the added one');
    check(item.inner === 'done' && item.partDone === (item.type === 'message'), event, 'first its content');
    item.done = done;
    check(/^(completed|incomplete)$/.test(String(done['status'])), event, 'a done item has an end');
    check(isDeepStrictEqual(fromDeltas(item), done), event, 'the deltas are the item');
    return;
  }
  check(event['item_id'] === item.id, event, 'item_id and output_index agree');
  readContentEvent(item, event);
}

function readContentEvent(item: SeenItem, event: ReadEvent): void {
  if (item.type === 'message') check(event['content_index'] === 0, event, 'a message has one part');
  const part = event['part'] as { text: string } | undefined;
  if (event.type === 'response.content_part.added') {
    check(item.type === 'message' && item.inner === 'none' && part?.text === '', event, 'a part opens once');
    item.inner = 'open';
  } else if (event.type === 'response.content_part.done') {
    check(
      item.inner === 'done' && !item.partDone && part?.text === item.text,
      event,
      'the part has the text',
    );
    item.partDone = true;
  } else if (deltaOf[event.type] !== undefined) {
    check(deltaOf[event.type] === item.type && item.inner === 'open', event, 'a delta is of an open part');
    check(event['delta'] !== '', event, 'a delta adds something');
    item.text += String(event['delta']);
  } else {
    const [type, field] = doneOf[event.type] ?? [];
    check(type === item.type && item.inner === 'open', event, 'an event of the grammar, in its place');
    check(event[String(field)] === item.text, event, 'the deltas add up');
    item.inner = 'done';
  }
}

/** The item with its text replaced by what the deltas said. */
function fromDeltas({ type, text, done }: SeenItem): object {
  if (type === 'function_call') return { ...done, arguments: text };
  if (type === 'custom_tool_call') return { ...done, input: text };
  return { ...done, content: [{ type: 'output_text', text, annotations: [], logprobs: [] }] };
}
