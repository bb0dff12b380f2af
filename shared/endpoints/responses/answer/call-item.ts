import type {
  CustomToolCallItem,
  FunctionCallItem,
  ItemStatus,
  ResponsesEvent,
} from './responses-response.ts';
import { GrowingText } from '../../../wire/chunk-content.ts';
import { JsonEnd } from './json-end.ts';
import type { ItemEnd, OpenItem } from './open-item.ts';

/** A tool as a Responses client declared it. The upstream knows it by a flat name. */
export interface DeclaredTool {
  kind: 'function' | 'custom';
  name: string;
  namespace: string | undefined;
}

export interface CallOpening {
  /** The end of the item's id. */
  suffix: string;
  outputIndex: number;
  callId: string;
  /** The tool by the names that the client gave it. */
  tool: DeclaredTool;
}

/** A call of a function, or of a custom tool, whose input is free text. */
export class CallWriter implements OpenItem {
  readonly kind = 'call';
  readonly outputIndex: number;
  readonly #id: string;
  readonly #callId: string;
  readonly #tool: DeclaredTool;
  readonly #jsonEnd = new JsonEnd();
  readonly #input = new GrowingText();

  constructor({ suffix, outputIndex, callId, tool }: CallOpening) {
    this.outputIndex = outputIndex;
    this.#id = `${tool.kind === 'custom' ? 'ctc' : 'fc'}_${suffix}`;
    this.#callId = callId;
    this.#tool = tool;
  }

  /** Arguments are one JSON object, so their end is known. Free text may go on until the answer ends. */
  finished(): boolean {
    return this.#tool.kind === 'function' && this.#jsonEnd.reached;
  }

  added(): ResponsesEvent[] {
    const item = this.#item('in_progress');
    return [{ type: 'response.output_item.added', output_index: this.outputIndex, item }];
  }

  input(delta: string): ResponsesEvent[] {
    this.#input.add(delta);
    if (this.#tool.kind === 'function') this.#jsonEnd.push(delta);
    if (delta === '') return [];
    return [{ type: `response.${this.#inputName}.delta`, ...this.#place(), delta }];
  }

  done({ status }: ItemEnd): { item: FunctionCallItem | CustomToolCallItem; events: ResponsesEvent[] } {
    const item = this.#item(status);
    const whole =
      item.type === 'function_call' ? { name: item.name, arguments: item.arguments } : { input: item.input };
    const events = [
      { type: `response.${this.#inputName}.done`, ...this.#place(), ...whole },
      { type: 'response.output_item.done', output_index: this.outputIndex, item },
    ];
    return { item, events };
  }

  get #inputName(): string {
    return this.#tool.kind === 'custom' ? 'custom_tool_call_input' : 'function_call_arguments';
  }

  #place(): { item_id: string; output_index: number } {
    return { item_id: this.#id, output_index: this.outputIndex };
  }

  #item(status: ItemStatus): FunctionCallItem | CustomToolCallItem {
    const { kind, name, namespace } = this.#tool;
    const common = {
      id: this.#id,
      status,
      name,
      ...(namespace !== undefined && { namespace }),
      call_id: this.#callId,
    };
    return kind === 'custom'
      ? { ...common, type: 'custom_tool_call', input: this.#input.text }
      : { ...common, type: 'function_call', arguments: this.#input.text };
  }
}
