import type { ToolCallDelta } from '../../wire/chat-response.ts';
import type {
  CustomToolCallItem,
  FunctionCallItem,
  ItemStatus,
  OutputItem,
  OutputText,
  ResponsesEvent,
} from './responses-response.ts';
import { asRecord, parseJson } from '../../wire/json-record.ts';
import type { DeclaredTool } from './tool-names.ts';

const outputText = (text: string): OutputText => ({
  type: 'output_text',
  text,
  annotations: [],
  logprobs: [],
});

/** An output item that is being written, with its events from added to done. */
export interface OpenItem {
  readonly outputIndex: number;
  added(): ResponsesEvent[];
  push(delta: string): ResponsesEvent[];
  done(status: ItemStatus): ResponsesEvent[];
  item(status: ItemStatus): OutputItem;
}

export function openMessage(id: string, outputIndex: number): OpenItem {
  let text = '';
  const place = { item_id: id, output_index: outputIndex, content_index: 0 };
  const item = (status: ItemStatus, content = [outputText(text)]): OutputItem => ({
    id,
    type: 'message',
    status,
    role: 'assistant',
    content,
  });
  return {
    outputIndex,
    added: () => [
      { type: 'response.output_item.added', output_index: outputIndex, item: item('in_progress', []) },
      { type: 'response.content_part.added', ...place, part: outputText('') },
    ],
    push(delta) {
      text += delta;
      return [{ type: 'response.output_text.delta', ...place, delta, logprobs: [] }];
    },
    done: (status) => [
      { type: 'response.output_text.done', ...place, text, logprobs: [] },
      { type: 'response.content_part.done', ...place, part: outputText(text) },
      { type: 'response.output_item.done', output_index: outputIndex, item: item(status) },
    ],
    item,
  };
}

interface OpenedCall {
  outputIndex: number;
  first: ToolCallDelta;
  tool: DeclaredTool;
}

/**
 * Opens a tool call. The input of a custom tool is unwrapped at the end, when its JSON is complete. `suffix`
 * is the end of the item's id; `first` is the delta that opened the call.
 */
export function openCall(suffix: string, { outputIndex, first, tool }: OpenedCall): OpenItem {
  let input = '';
  const { name, namespace, kind } = tool;
  const id = `${kind === 'custom' ? 'ctc' : 'fc'}_${suffix}`;
  const place = { item_id: id, output_index: outputIndex };
  const item = (status: ItemStatus): FunctionCallItem | CustomToolCallItem => {
    const common = {
      id,
      status,
      name,
      ...(namespace === undefined ? {} : { namespace }),
      call_id: first.id ?? '',
    };
    return kind === 'custom'
      ? { ...common, type: 'custom_tool_call', input: unwrapInput(input) }
      : { ...common, type: 'function_call', arguments: input };
  };
  const lastDeltas = (whole: FunctionCallItem | CustomToolCallItem): ResponsesEvent[] => {
    if (whole.type === 'function_call')
      return [{ type: 'response.function_call_arguments.done', ...place, name, arguments: whole.arguments }];
    const end = { type: 'response.custom_tool_call_input.done', ...place, input: whole.input };
    if (whole.input === '') return [end];
    return [{ type: 'response.custom_tool_call_input.delta', ...place, delta: whole.input }, end];
  };
  return {
    outputIndex,
    added: () => [
      { type: 'response.output_item.added', output_index: outputIndex, item: item('in_progress') },
    ],
    push(delta) {
      input += delta;
      if (delta === '' || kind === 'custom') return [];
      return [{ type: 'response.function_call_arguments.delta', ...place, delta }];
    },
    done(status) {
      const whole = item(status);
      return [
        ...lastDeltas(whole),
        { type: 'response.output_item.done', output_index: outputIndex, item: whole },
      ];
    },
    item,
  };
}

/** The text in `{"input": "..."}`; plain text is accepted as it is. */
function unwrapInput(text: string): string {
  const { input } = asRecord(parseJson(text));
  return typeof input === 'string' ? input : text;
}
