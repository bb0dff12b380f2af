import type { ToolCallDelta } from '../../wire/chat-response.ts';
import type {
  CustomToolCallItem,
  FunctionCallItem,
  ItemStatus,
  MessageItem,
  OutputText,
  ResponsesEvent,
} from '../../wire/responses-response.ts';
import { isRecord } from '../../wire/json-record.ts';
import type { DeclaredTool } from './tool-names.ts';

const outputText = (text: string): OutputText => ({
  type: 'output_text',
  text,
  annotations: [],
  logprobs: [],
});

/** An open message of the answer: its events from added to done. */
export class OpenMessage {
  readonly #id: string;
  readonly #outputIndex: number;
  #text = '';

  constructor(id: string, outputIndex: number) {
    this.#id = id;
    this.#outputIndex = outputIndex;
  }

  added(): ResponsesEvent[] {
    return [
      {
        type: 'response.output_item.added',
        output_index: this.#outputIndex,
        item: this.item('in_progress', []),
      },
      { type: 'response.content_part.added', ...this.#place(), part: outputText('') },
    ];
  }

  push(delta: string): ResponsesEvent[] {
    this.#text += delta;
    return [{ type: 'response.output_text.delta', ...this.#place(), delta, logprobs: [] }];
  }

  done(status: ItemStatus): ResponsesEvent[] {
    const part = outputText(this.#text);
    return [
      { type: 'response.output_text.done', ...this.#place(), text: this.#text, logprobs: [] },
      { type: 'response.content_part.done', ...this.#place(), part },
      { type: 'response.output_item.done', output_index: this.#outputIndex, item: this.item(status) },
    ];
  }

  item(status: ItemStatus, content = [outputText(this.#text)]): MessageItem {
    return { id: this.#id, type: 'message', status, role: 'assistant', content };
  }

  #place(): { item_id: string; output_index: number; content_index: number } {
    return { item_id: this.#id, output_index: this.#outputIndex, content_index: 0 };
  }
}

interface OpenedCall {
  outputIndex: number;
  first: ToolCallDelta;
  tool: DeclaredTool;
}

/** An open tool call of the answer. A custom tool's input is unwrapped at its end, when its JSON is whole. */
export class OpenCall {
  readonly #id: string;
  readonly #outputIndex: number;
  readonly #callId: string;
  readonly #tool: DeclaredTool;
  #arguments = '';

  /** `suffix` makes the item's id; `first` is the delta that opened the call. */
  constructor(suffix: string, { outputIndex, first, tool }: OpenedCall) {
    this.#id = `${tool.kind === 'custom' ? 'ctc' : 'fc'}_${suffix}`;
    this.#outputIndex = outputIndex;
    this.#callId = first.id ?? '';
    this.#tool = tool;
  }

  added(): ResponsesEvent[] {
    return [
      { type: 'response.output_item.added', output_index: this.#outputIndex, item: this.item('in_progress') },
    ];
  }

  push(delta: string): ResponsesEvent[] {
    if (delta === '') return [];
    this.#arguments += delta;
    if (this.#tool.kind === 'custom') return [];
    return [{ type: 'response.function_call_arguments.delta', ...this.#place(), delta }];
  }

  done(status: ItemStatus): ResponsesEvent[] {
    const item = this.item(status);
    const place = this.#place();
    const last =
      item.type === 'custom_tool_call'
        ? [
            ...(item.input === ''
              ? []
              : [{ type: 'response.custom_tool_call_input.delta', ...place, delta: item.input }]),
            { type: 'response.custom_tool_call_input.done', ...place, input: item.input },
          ]
        : [
            {
              type: 'response.function_call_arguments.done',
              ...place,
              name: item.name,
              arguments: item.arguments,
            },
          ];
    return [...last, { type: 'response.output_item.done', output_index: this.#outputIndex, item }];
  }

  item(status: ItemStatus): FunctionCallItem | CustomToolCallItem {
    const { name, namespace, kind } = this.#tool;
    const common = {
      id: this.#id,
      status,
      name,
      ...(namespace === undefined ? {} : { namespace }),
      call_id: this.#callId,
    };
    return kind === 'custom'
      ? { ...common, type: 'custom_tool_call', input: unwrapInput(this.#arguments) }
      : { ...common, type: 'function_call', arguments: this.#arguments };
  }

  #place(): { item_id: string; output_index: number } {
    return { item_id: this.#id, output_index: this.#outputIndex };
  }
}

/** The text in `{"input": "..."}`; plain text is accepted as it is. */
function unwrapInput(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    if (isRecord(value) && typeof value['input'] === 'string') return value['input'];
  } catch {
    // Not JSON: the text is the input.
  }
  return text;
}
