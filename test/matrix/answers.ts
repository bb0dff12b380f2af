/** The answers of upstreams: their types, a shortest one with a value of a field, and the events in which a vendor streams it. */
// oxlint-disable oxc/no-map-spread -- An answer has a handful of events.
import { asRecord, isRecord, listIn, recordsIn, type JsonRecord } from '../../shared/wire/json.ts';
import { answers, probes, type Dialect } from './endpoints.ts';
import type { Vocabulary } from './places.ts';

interface AnswerForm extends Vocabulary {
  types: readonly (readonly [file: string, name: string])[];
  events: readonly (readonly [file: string, name: string])[];
  /** In the order of the vendor. */
  stream(answer: JsonRecord): JsonRecord[];
}

const whole = (dialect: Dialect): JsonRecord => asRecord(answers[dialect]);
const setField = (dialect: Dialect, field: string, value: unknown): JsonRecord =>
  value === undefined ? whole(dialect) : { ...whole(dialect), [field]: value };

/** Parts of other counts must not exceed these. */
const counts: Vocabulary['probes'] = Object.fromEntries(
  'reasoning_tokens thinking_tokens cached_tokens cache_write_tokens ephemeral_1h_input_tokens ephemeral_5m_input_tokens'
    .split(' ')
    .map((name) => [name, [7, 8]] as const),
);

/** A field that only a failed or incomplete answer has. */
const statusOf: Record<string, string> = { error: 'failed', incomplete_details: 'incomplete' };

export const answerForms: Record<Dialect, AnswerForm> = {
  chat: {
    types: [['openai/resources/chat/completions/completions', 'ChatCompletion']],
    events: [['openai/resources/chat/completions/completions', 'ChatCompletionChunk']],
    probes: { ...probes, ...counts },
    least: {
      'choices[]': { index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'whole' } },
    },
    defaults: { finish_reason: 'stop' },
    excludes: (path) => /^model$|\.type$|\.role$|^moderation\./.test(path),
    fill: (field, value) => setField('chat', field, value),
    stream({ choices, usage, ...document }) {
      const chunks = recordsIn(choices).flatMap(({ message, finish_reason: reason, ...choice }) => {
        const { tool_calls: calls, ...delta } = asRecord(message);
        const indexed = recordsIn(calls).map((call, index) => ({ index, ...call }));
        const first = { ...delta, ...(indexed.length > 0 && { tool_calls: indexed }) };
        return [
          { ...choice, delta: first, finish_reason: null },
          { index: choice['index'], delta: {}, finish_reason: reason },
        ];
      });
      const all = chunks.map((choice): JsonRecord => ({ ...document, choices: [choice] }));
      return [...all, ...(usage === undefined ? [] : [{ ...document, choices: [], usage }])];
    },
  },
  messages: {
    types: [
      ['@anthropic-ai/sdk/resources/messages/messages', 'Message'],
      ['@anthropic-ai/sdk/resources/beta/messages/messages', 'BetaMessage'],
    ],
    events: [
      ['@anthropic-ai/sdk/resources/messages/messages', 'RawMessageStreamEvent'],
      ['@anthropic-ai/sdk/resources/messages/messages', 'RawContentBlockDelta'],
      ['@anthropic-ai/sdk/resources/beta/messages/messages', 'BetaRawMessageStreamEvent'],
      ['@anthropic-ai/sdk/resources/beta/messages/messages', 'BetaRawContentBlockDelta'],
    ],
    probes: { ...probes, ...counts },
    least: {},
    defaults: { stop_reason: 'end_turn' },
    excludes: (path) => /^model$|\.type$|\.role$|\.definition\[/.test(path),
    fill: (field, value) =>
      setField(
        'messages',
        field,
        field === 'content' ? [...listIn(value), ...listIn(whole('messages')['content'])] : value,
      ),
    stream: streamMessage,
  },
  responses: {
    types: [
      ['openai/resources/responses/responses', 'Response'],
      ['openai/resources/beta/responses/responses', 'BetaResponse'],
    ],
    events: [
      ['openai/resources/responses/responses', 'ResponseStreamEvent'],
      ['openai/resources/beta/responses/responses', 'BetaResponseStreamEvent'],
    ],
    probes: { ...probes, ...counts },
    least: { '[reasoning]': { summary: [], content: [{ type: 'reasoning_text', text: 'thought' }] } },
    defaults: { status: 'completed', phase: 'final_answer', reason: 'max_output_tokens' },
    excludes: (path) =>
      /^model$|\.type$|\.role$|^(?:tools|tool_choice|instructions|text|reasoning|prompt|moderation)\b./.test(
        path,
      ),
    fill: (field, value) => ({
      ...setField(
        'responses',
        field,
        field === 'output' ? [...listIn(value), ...listIn(whole('responses')['output'])] : value,
      ),
      ...(field in statusOf && { status: statusOf[field] }),
    }),
    stream: streamResponse,
  },
};

function streamMessage({ content, usage, ...message }: JsonRecord): JsonRecord[] {
  const { stop_reason: reason, stop_sequence: sequence, stop_details: details, ...opening } = message;
  const start = {
    ...opening,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    ...(isRecord(usage) && { usage }),
  };
  const blocks = recordsIn(content).flatMap((block, index) => {
    const { opened, deltas } = openBlock(block);
    return [
      { type: 'content_block_start', index, content_block: opened },
      ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
      { type: 'content_block_stop', index },
    ];
  });
  const delta = { stop_reason: reason, stop_sequence: sequence ?? null, stop_details: details ?? null };
  const end = { type: 'message_delta', delta, ...(isRecord(usage) && { usage }) };
  return [{ type: 'message_start', message: start }, ...blocks, end, { type: 'message_stop' }];
}

function openBlock(block: JsonRecord): { opened: JsonRecord; deltas: JsonRecord[] } {
  const { type, text, citations, thinking, signature, input, content } = block;
  if (type === 'text') {
    const cited = listIn(citations).map((citation) => ({ type: 'citations_delta', citation }));
    return {
      opened: { ...block, text: '', citations: null },
      deltas: [{ type: 'text_delta', text }, ...cited],
    };
  }
  if (type === 'thinking')
    return {
      opened: { ...block, thinking: '', signature: '' },
      deltas: [
        { type: 'thinking_delta', thinking },
        { type: 'signature_delta', signature },
      ],
    };
  if (String(type).endsWith('tool_use'))
    return {
      opened: { ...block, input: {} },
      deltas: [{ type: 'input_json_delta', partial_json: JSON.stringify(input) }],
    };
  if (type === 'compaction') return { opened: block, deltas: [{ type: 'compaction_delta', content }] };
  return { opened: block, deltas: [] };
}

function streamResponse(response: JsonRecord): JsonRecord[] {
  const opening = { ...response, status: 'in_progress', output: [], usage: null };
  const status = String(response['status']);
  const end = ['failed', 'incomplete'].includes(status) ? status : 'completed';
  return [
    { type: 'response.created', response: opening },
    { type: 'response.in_progress', response: opening },
    ...recordsIn(response['output']).flatMap(streamItem),
    { type: `response.${end}`, response },
  ].map((event, number) => ({ ...event, sequence_number: number }));
}

function streamItem(item: JsonRecord, index: number): JsonRecord[] {
  const at = { output_index: index, item_id: item['id'] ?? `item_${index}` };
  const { type } = item;
  const { opened, events } = openItem(item, at);
  return [
    { type: 'response.output_item.added', output_index: index, item: { id: at.item_id, ...opened } },
    ...events,
    { type: 'response.output_item.done', output_index: index, item: { id: at.item_id, ...item, type } },
  ];
}

function openItem(item: JsonRecord, at: JsonRecord): { opened: JsonRecord; events: JsonRecord[] } {
  const { type, arguments: called, input } = item;
  if (type === 'message') return { opened: { ...item, content: [] }, events: streamParts(item, at) };
  if (type === 'function_call')
    return {
      opened: { ...item, arguments: '' },
      events: pair('function_call_arguments', at, { arguments: called }),
    };
  if (type === 'custom_tool_call')
    return { opened: { ...item, input: '' }, events: pair('custom_tool_call_input', at, { input }) };
  if (type !== 'reasoning') return { opened: item, events: [] };
  const summary = recordsIn(item['summary']).flatMap((part, i) => {
    const place = { ...at, summary_index: i };
    return [
      { type: 'response.reasoning_summary_part.added', ...place, part: { ...part, text: '' } },
      ...pair('reasoning_summary_text', place, { text: part['text'] }),
      { type: 'response.reasoning_summary_part.done', ...place, part },
    ];
  });
  const content = recordsIn(item['content']).flatMap((part, i) =>
    pair('reasoning_text', { ...at, content_index: i }, { text: part['text'] }),
  );
  return { opened: { ...item, summary: [], content: [] }, events: [...summary, ...content] };
}

function streamParts({ content }: JsonRecord, at: JsonRecord): JsonRecord[] {
  return recordsIn(content).flatMap((part, i) => {
    const place = { ...at, content_index: i };
    const { annotations, logprobs } = part;
    const texts =
      part['type'] === 'refusal'
        ? pair('refusal', place, { refusal: part['refusal'] })
        : pair('output_text', { ...place, logprobs: logprobs ?? [] }, { text: part['text'] });
    const noted = listIn(annotations).map((annotation, number) => ({
      type: 'response.output_text.annotation.added',
      ...place,
      annotation_index: number,
      annotation,
    }));
    const empty = part['type'] === 'refusal' ? { refusal: '' } : { text: '', annotations: [] };
    return [
      { type: 'response.content_part.added', ...place, part: { ...part, ...empty } },
      ...texts.slice(0, 1),
      ...noted,
      ...texts.slice(1),
      { type: 'response.content_part.done', ...place, part },
    ];
  });
}

/** A delta with the whole text, and the event that repeats it. */
const pair = (name: string, at: JsonRecord, text: JsonRecord): JsonRecord[] => [
  { type: `response.${name}.delta`, ...at, delta: Object.values(text)[0] },
  { type: `response.${name}.done`, ...at, ...text },
];
