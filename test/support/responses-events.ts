import { ResponsesReader } from '../../shared/upstreams/dialects/responses/events.ts';
import type { ChatChunk, ChatDelta, ToolCallDelta } from '../../shared/wire/chat-response.ts';
import { readerContext } from './dialect-parts.ts';

export type Value = Record<string, unknown>;

export interface Answer {
  content: string;
  reasoning: string;
  refusal: string;
  calls: string[];
  phases: string[];
  finish: string | null | undefined;
}

export const push = (reader: ResponsesReader, values: Value[]): ChatChunk[] =>
  values.flatMap((value) => reader.push({ kind: 'value', value }));

export function readerOf(wrapped: string[] = []): ResponsesReader {
  const sent = { body: {}, dropped: [], wrappedTools: new Set(wrapped) };
  return new ResponsesReader(readerContext({ sent }));
}

/** The answer as clients see it, each call as `id name text`. */
export function read(values: Value[], reader = readerOf()): Answer {
  const chunks = [...push(reader, values), ...reader.end()];
  const deltas = chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta));
  const join = (text: (delta: ChatDelta) => string | null | undefined): string =>
    deltas.map((delta) => text(delta) ?? '').join('');
  const calls: string[] = [];
  for (const piece of deltas.flatMap(({ tool_calls: pieces }) => pieces ?? []))
    calls[piece.index] = (calls[piece.index] ?? '') + pieceText(piece);
  return {
    content: join(({ content }) => content),
    reasoning: join(({ reasoning_content: text }) => text),
    refusal: join(({ refusal }) => refusal),
    calls,
    phases: deltas.flatMap(({ phase }) => phase ?? []),
    finish: chunks.flatMap(({ choices }) => choices).at(-1)?.finish_reason,
  };
}

export const pieceText = ({ id, function: called, custom }: ToolCallDelta): string =>
  (id === undefined ? '' : `${id} ${called?.name ?? custom?.name} `) +
  (called?.arguments ?? custom?.input ?? '');

export const nothing: Answer = {
  content: '',
  reasoning: '',
  refusal: '',
  calls: [],
  phases: [],
  finish: 'stop',
};
export const idOf = (letter: string): string => `call_${letter.repeat(20)}`;
export const [callA, callB] = [idOf('a'), idOf('b')];

export const delta = (text: string, more: Value = {}): Value => ({
  type: 'response.output_text.delta',
  delta: text,
  ...more,
});
export const argumentsDelta = (text: string, more: Value = {}): Value => ({
  type: 'response.function_call_arguments.delta',
  delta: text,
  ...more,
});
export const added = (item: Value, more: Value = {}): Value => ({
  type: 'response.output_item.added',
  item,
  ...more,
});
export const done = (item: Value, more: Value = {}): Value => ({
  type: 'response.output_item.done',
  item,
  ...more,
});
export const message = (text: string, more: Value = {}): Value => ({
  type: 'message',
  role: 'assistant',
  content: [{ type: 'output_text', text }],
  ...more,
});
export const called = (callId: string, text: string, more: Value = {}): Value => ({
  type: 'function_call',
  call_id: callId,
  name: 'f',
  arguments: text,
  ...more,
});
export const completed = (...output: Value[]): Value => ({
  type: 'response.completed',
  response: { status: 'completed', output },
});
export const incomplete = (reason: string): Value => ({
  type: 'response.incomplete',
  response: { status: 'incomplete', incomplete_details: { reason } },
});
export const at = (index: number, id?: string): Value => ({
  output_index: index,
  ...(id !== undefined && { item_id: id }),
});
