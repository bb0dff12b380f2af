import type { ChatContentPart } from '../../wire/chat-request.ts';
import type { EstimatedCall } from '../estimate/input-tokens.ts';
import { TextShape } from '../estimate/text-shape.ts';
import { windowTokens } from '../estimate/window-tokens.ts';

/** Estimates of a text. */
export interface TextTokens {
  /** No tokenizer counts fewer, apart from the error that `shareMin` allows for. */
  below: number;
  unbiased: number;
}

/** The text of one answer, counted while it is streamed. One pass over each piece, on the hot path. */
export class StreamedText {
  readonly #visible = new TextShape();
  readonly #beside = new TextShape();

  /**
   * `visible`: text and calls, which every vendor counts as output. `beside`: what some write and do not count, such as
   * summaries of reasoning, results of their own tools, words about a refusal.
   */
  add(visible: string, beside: string): void {
    this.#visible.add(visible);
    this.#beside.add(beside);
  }

  get visible(): TextTokens {
    return { below: this.#visible.tokensFromBelow, unbiased: Math.ceil(this.#visible.tokens) };
  }

  /** What is charged when the upstream's count is not used. Hidden reasoning is not in it. */
  get all(): TextTokens {
    const [visible, beside] = [this.#visible, this.#beside];
    return {
      below: visible.tokensFromBelow + beside.tokensFromBelow,
      unbiased: Math.ceil(visible.tokens + beside.tokens),
    };
  }
}

/**
 * No tokenizer counts fewer for the conversation. Only what every upstream reads as text: tools and schemas are
 * rewritten, earlier reasoning is left out, pictures have a price of their own.
 */
export function inputBelow({ request }: EstimatedCall): number {
  const text = new TextShape();
  for (const { role, content } of request.messages) {
    const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? []);
    for (const part of parts) {
      const said = part.type === 'text' ? (part.text ?? '') : '';
      text.cut().add(role === 'assistant' ? said.slice(endOfThinking(said)) : said);
    }
  }
  return text.tokensFromBelow;
}

/** Templates of chat models leave out what an earlier turn has before the last of these. */
const thinkingEnd = /<\/(?:\w{1,16}:)?think(?:ing)?>|\[\/THINK\]/g;

function endOfThinking(text: string): number {
  let end = 0;
  for (const { 0: tag, index } of text.matchAll(thinkingEnd)) end = index + tag.length;
  return end;
}

/** Prompts that vendors put before the caller's. The longest known has about 700 tokens. */
const hiddenTokens = 1_000;
/** Source: OpenAI's token counting guide; its small models count a large picture at 36,835. */
const tokensPerImageMax = 50_000;

/** No upstream can have read more: a token has at least one byte. Slow: reads the whole call. */
export function inputMax({ request, unknown }: EstimatedCall): number {
  const { messages, ...fields } = request;
  let tokens = hiddenTokens + jsonBytes(fields) + jsonBytes(unknown);
  for (const { content, ...others } of messages) {
    tokens += jsonBytes(others);
    if (typeof content === 'string') tokens += bytesOf(content);
    else for (const part of content ?? []) tokens += partMax(part);
  }
  return tokens;
}

function partMax(part: ChatContentPart): number {
  if (part.type === 'text') return bytesOf(part.text ?? '');
  const isPicture = part.type === 'image_url' && !/^data:(?!image\/)/i.test(part.image_url?.url ?? '');
  // A document or recording may fill any model's window.
  return isPicture ? tokensPerImageMax : windowTokens;
}

const jsonBytes = (value: object): number => bytesOf(JSON.stringify(value));

/** In UTF-8. A half of a pair of surrogates counts as two. */
function bytesOf(text: string): number {
  let bytes = text.length;
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code >= 0x80) bytes += code < 0x800 || (code >= 0xd800 && code < 0xe000) ? 1 : 2;
  }
  return bytes;
}
