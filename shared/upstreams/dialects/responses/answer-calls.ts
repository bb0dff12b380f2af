/** Shows tool calls as canonical pieces: a dense index, an id of its own for each, id and name in the first piece. */
import type { ChatChunk, ToolCallDelta } from '../../../wire/chat-response.ts';
import { parseJson } from '../../../wire/json-record.ts';
import { unwrappedInput } from '../../calls/custom-tools.ts';
import type { ReaderContext } from '../../dialect.ts';
import { UpstreamFailure } from '../../upstream-failure.ts';
import type { AnswerItem } from './output-items.ts';
import type { AnswerTurn } from './answer-turn.ts';

/** Eight times what OpenAI allows. */
const callsMax = 1024;

export class AnswerCalls {
  readonly #turn: AnswerTurn;
  readonly #context: Pick<ReaderContext, 'callIds' | 'sent'>;
  readonly #shownIds = new Set<string>();
  #count = 0;

  constructor(turn: AnswerTurn, context: Pick<ReaderContext, 'callIds' | 'sent'>) {
    this.#turn = turn;
    this.#context = context;
  }

  get any(): boolean {
    return this.#count > 0;
  }

  /**
   * `added`: what is new of its text. Nothing is shown before id and name are known. A custom tool that was sent as a
   * function is shown once its JSON is whole.
   */
  show(item: AnswerItem, added: string): ChatChunk[] {
    if (item.name === undefined || item.callId === undefined || this.#isWrapped(item)) return [];
    if (item.callIndex === undefined) return [this.#first(item, textOfCall(item))];
    return added === '' ? [] : [this.#more(item, item.callIndex, added)];
  }

  /**
   * `isWhole`: the call is not cut. A function without arguments gets an empty object, so that all arguments are JSON.
   */
  end(item: AnswerItem, isWhole: boolean): ChatChunk[] {
    if (this.#isWrapped(item)) return this.#unwrap(item, isWhole);
    const part = item.parts.find(({ kind }) => kind === 'call');
    const index = item.callIndex ?? this.#count;
    const shown = item.callIndex === undefined ? [this.#first(item, part?.text ?? '')] : [];
    if (item.type !== 'function_call' || (part && part.text !== '') || !isWhole) return shown;
    // Later events repeat the empty text, and must not be taken for something new.
    if (part) part.text = '{}';
    return [...shown, this.#more(item, index, '{}')];
  }

  #isWrapped({ type, name }: AnswerItem): boolean {
    return type === 'function_call' && name !== undefined && this.#context.sent.wrapped.has(name);
  }

  /** A call that was cut inside its wrapper is not shown: nobody could run it. */
  #unwrap(item: AnswerItem, isWhole: boolean): ChatChunk[] {
    const text = textOfCall(item);
    const isCut = parseJson(text) === undefined && (!isWhole || text.trimStart().startsWith('{'));
    if (item.callIndex !== undefined || isCut) return [];
    return [this.#first({ ...item, type: 'custom_tool_call' }, unwrappedInput(text), item)];
  }

  #first(as: AnswerItem, text: string, item = as): ChatChunk {
    const index = this.#count;
    if (index >= callsMax) throw new UpstreamFailure('too_large');
    this.#count += 1;
    item.callIndex = index;
    const name = item.name ?? '';
    const id = this.#id(item.callId, index);
    const isCustom = as.type === 'custom_tool_call';
    return this.#delta(
      isCustom
        ? { index, id, type: 'custom', custom: { name, input: text } }
        : { index, id, type: 'function', function: { name, arguments: text } },
    );
  }

  #more({ type }: AnswerItem, index: number, text: string): ChatChunk {
    const isCustom = type === 'custom_tool_call';
    return this.#delta(
      isCustom ? { index, custom: { input: text } } : { index, function: { arguments: text } },
    );
  }

  /** An id that came before is not shown twice: results would be mixed up. */
  #id(callId: string | undefined, index: number): string {
    const own = this.#context.callIds.show(callId, index);
    const id = this.#shownIds.has(own) ? this.#context.callIds.show(undefined, index) : own;
    this.#shownIds.add(id);
    return id;
  }

  #delta(call: ToolCallDelta): ChatChunk {
    return this.#turn.delta({ tool_calls: [call] });
  }
}

const textOfCall = ({ parts }: AnswerItem): string => parts.find(({ kind }) => kind === 'call')?.text ?? '';
