import { sseFrame } from '../script/frames.ts';
import { piecesOf, wordsOf } from '../script/tokens.ts';
import { objectsIn, textIn } from '../script/vendor.ts';

type Json = Record<string, unknown>;
type Event = { type: string } & Json;

/** The events of a response, numbered: `started` before, `finished` after all items of its output. */
export function responseFrames(started: Json, finished: Json): string[] {
  const events = [
    { type: 'response.created', response: started },
    { type: 'response.in_progress', response: started },
    ...objectsIn(finished['output']).flatMap((item, index) => itemEvents(item, index)),
    { type: `response.${textIn(finished['status'])}`, response: finished },
  ];
  return events.map((event, number) => eventFrame({ ...event, sequence_number: number }));
}

export const eventFrame = (event: { type: string } & Json): string => sseFrame(event, event.type);

interface Place {
  item_id: unknown;
  output_index: number;
}

function itemEvents(item: Json, index: number): Event[] {
  const place = { item_id: item['id'], output_index: index };
  const { events, opened } = partsOf(item, place);
  return [
    { type: 'response.output_item.added', output_index: index, item: { ...item, ...opened } },
    ...events,
    { type: 'response.output_item.done', output_index: index, item },
  ];
}

interface Parts {
  /** Between the item's first and last event. */
  events: Event[];
  /** What the item is when it is added. */
  opened: Json;
}

function partsOf(item: Json, place: Place): Parts {
  switch (item['type']) {
    case 'message':
      return {
        opened: { status: 'in_progress', content: [] },
        events: objectsIn(item['content']).flatMap((part, index) =>
          contentEvents(part, { ...place, content_index: index }),
        ),
      };
    case 'reasoning':
      return {
        opened: { summary: [] },
        events: objectsIn(item['summary']).flatMap((part, index) =>
          summaryEvents(part, { ...place, summary_index: index }),
        ),
      };
    case 'function_call':
      return inputEvents(item, place, { event: 'response.function_call_arguments', field: 'arguments' });
    case 'custom_tool_call':
      return inputEvents(item, place, { event: 'response.custom_tool_call_input', field: 'input' });
    case 'compaction':
      return { opened: {}, events: [{ type: 'response.compaction.compacting', ...place }] };
    default:
      return { opened: {}, events: [] };
  }
}

/** A call that was cut has no event that ends its input. */
function inputEvents(item: Json, place: Place, { event, field }: { event: string; field: string }): Parts {
  const input = textIn(item[field]);
  const at = (type: string, more: Json): Event => ({ type: `${event}.${type}`, ...place, ...more });
  return {
    opened: { status: 'in_progress', [field]: '' },
    events: [
      ...piecesOf(input).map((delta) => at('delta', { delta })),
      ...(item['status'] === 'incomplete' ? [] : [at('done', { [field]: input })]),
    ],
  };
}

function contentEvents(part: Json, place: Place & { content_index: number }): Event[] {
  const isRefusal = part['type'] === 'refusal';
  const [event, field] = isRefusal ? ['response.refusal', 'refusal'] : ['response.output_text', 'text'];
  const logprobs = isRefusal ? {} : { logprobs: [] };
  const text = textIn(part[field]);
  const at = (type: string, more: Json): Event => ({ type, ...place, ...more });
  return [
    at('response.content_part.added', {
      part: { ...part, [field]: '', ...(isRefusal ? {} : { annotations: [] }) },
    }),
    ...wordsOf(text).map((delta) => at(`${event}.delta`, { delta, ...logprobs })),
    ...objectsIn(part['annotations']).map((annotation, index) =>
      at('response.output_text.annotation.added', { annotation_index: index, annotation }),
    ),
    at(`${event}.done`, { [field]: text, ...logprobs }),
    at('response.content_part.done', { part }),
  ];
}

function summaryEvents(part: Json, place: Place & { summary_index: number }): Event[] {
  const text = textIn(part['text']);
  const at = (type: string, more: Json): Event => ({ type: `response.${type}`, ...place, ...more });
  return [
    at('reasoning_summary_part.added', { part: { ...part, text: '' } }),
    ...wordsOf(text).map((delta) => at('reasoning_summary_text.delta', { delta })),
    at('reasoning_summary_text.done', { text }),
    at('reasoning_summary_part.done', { part }),
  ];
}
