import type { Machine } from '../../stream/machine.ts';
import type { ChatChunk, ChatDelta, ChatUsage, ToolCallDelta } from '../../wire/chat-response.ts';
import type { ErrorObject } from '../../wire/public/error-body.ts';
import type { ItemStatus, OutputItem, ResponseObject, ResponsesEvent } from './responses-response.ts';
import { finishedResponse, incompleteReason } from './objects.ts';
import { openCall, openMessage, type OpenItem } from './items.ts';
import type { DeclaredTool } from './tool-names.ts';

const noUsage: ChatUsage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };

/**
 * Converts the canonical stream of one choice to the events of a Responses stream: created in_progress (item
 * event | in_progress)* (completed | failed). Items are numbered in order of first appearance. A message is
 * closed when a call begins; calls stay open to the end, because upstreams interleave them. Reasoning is left
 * out: clients would send it back as an item, which the input side refuses.
 */
export class ChatToResponses implements Machine<ChatChunk, ResponsesEvent> {
  readonly #response: ResponseObject;
  readonly #declared: ReadonlyMap<string, DeclaredTool>;
  readonly #suffix: string;
  readonly #output: OutputItem[] = [];
  readonly #now: () => number;
  /** The open message, and open calls by their index in the canonical stream; in the order of the output. */
  readonly #open = new Map<'message' | number, OpenItem>();
  #items = 0;
  #started = false;
  /** The index of the first choice, which alone is shown. Some upstreams count their choices from 1. */
  #choice: number | undefined;
  #finish = 'stop';
  #usage = noUsage;
  #quota: number | undefined;

  /** `response`: the response object at the start. `now` returns Unix seconds. */
  constructor(response: ResponseObject, declared: ReadonlyMap<string, DeclaredTool>, now: () => number) {
    this.#response = response;
    this.#declared = declared;
    this.#now = now;
    this.#suffix = response.id.replace(/^resp-/, '');
  }

  /** The two events that open the stream; none if they were sent already. */
  start(): ResponsesEvent[] {
    if (this.#started) return [];
    this.#started = true;
    return [{ type: 'response.created', response: this.#response }, this.inProgress()];
  }

  inProgress(): ResponsesEvent {
    return { type: 'response.in_progress', response: this.#response };
  }

  push(chunk: ChatChunk): ResponsesEvent[] {
    if (chunk.usage) this.#usage = chunk.usage;
    if (typeof chunk.quota === 'number') this.#quota = chunk.quota;
    const events = this.start();
    for (const { index, delta, finish_reason: finish } of chunk.choices) {
      this.#choice ??= index;
      if (index !== this.#choice) continue;
      if (finish) this.#finish = finish;
      events.push(...this.#pushDelta(delta));
    }
    return events;
  }

  end(): ResponsesEvent[] {
    const status = incompleteReason(this.#finish) ? 'incomplete' : 'completed';
    const events = this.start();
    for (const place of this.#open.keys()) events.push(...this.#close(place, status));
    const response = finishedResponse(this.#response, {
      output: this.#output,
      usage: this.#usage,
      finish: this.#finish,
      quota: this.#quota,
      endedAt: this.#now(),
    });
    return [...events, { type: 'response.completed', response }];
  }

  /** Does not close open items: a client would run an incomplete call that is marked as done. */
  failed(error: ErrorObject): ResponsesEvent[] {
    const response = { ...this.#response, status: 'failed', output: this.#output.filter(Boolean), error };
    return [...this.start(), { type: 'response.failed', response, error }];
  }

  #pushDelta(delta: ChatDelta): ResponsesEvent[] {
    const text = (delta.content ?? '') + (delta.refusal ?? '');
    const events = text === '' ? [] : this.#pushText(text);
    for (const piece of delta.tool_calls ?? []) events.push(...this.#pushCall(piece));
    return events;
  }

  #pushText(text: string): ResponsesEvent[] {
    const known = this.#open.get('message');
    if (known) return known.push(text);
    const outputIndex = this.#items++;
    const open = openMessage(`msg_${this.#suffix}_${outputIndex}`, outputIndex);
    this.#open.set('message', open);
    return [...open.added(), ...open.push(text)];
  }

  #pushCall(piece: ToolCallDelta): ResponsesEvent[] {
    const text = piece.function?.arguments ?? '';
    const known = this.#open.get(piece.index);
    if (known) return known.push(text);
    const closing = this.#close('message', 'completed');
    const outputIndex = this.#items++;
    const name = piece.function?.name ?? '';
    const tool = this.#declared.get(name) ?? { kind: 'function', name, namespace: undefined };
    const open = openCall(`${this.#suffix}_${outputIndex}`, { outputIndex, first: piece, tool });
    this.#open.set(piece.index, open);
    return [...closing, ...open.added(), ...open.push(text)];
  }

  /** Returns no events if no such item is open. */
  #close(place: 'message' | number, status: ItemStatus): ResponsesEvent[] {
    const open = this.#open.get(place);
    if (!open) return [];
    this.#open.delete(place);
    this.#output[open.outputIndex] = open.item(status);
    return open.done(status);
  }
}
