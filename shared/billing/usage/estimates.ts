import type { ChatContentPart } from '../../wire/chat-request.ts';
import type { EstimatedCall } from '../estimate/input-tokens.ts';
import { TextShape } from '../estimate/text-shape.ts';
import { windowTokens } from '../estimate/window-tokens.ts';

/** The text of one answer, counted while it is streamed. One pass over each piece, on the hot path. */
export class StreamedText {
  readonly #shape = new TextShape();

  add(text: string): void {
    this.#shape.add(text);
  }

  /** No tokenizer counts fewer, apart from the error that `shareMin` allows for. */
  get below(): number {
    return this.#shape.tokensFromBelow;
  }

  /** What is charged when the upstream's count is not used. Hidden reasoning is not in it. */
  get unbiased(): number {
    return Math.ceil(this.#shape.tokens);
  }
}

/**
 * No tokenizer counts fewer for the conversation. Only what every upstream reads as text: tools and schemas are
 * rewritten, earlier reasoning is left out, pictures have a price of their own.
 */
export function inputBelow({ request }: EstimatedCall): number {
  const text = new TextShape();
  for (const { content } of request.messages) {
    if (typeof content === 'string') text.cut().add(content);
    else for (const part of content ?? []) if (part.type === 'text') text.cut().add(part.text ?? '');
  }
  return text.tokensFromBelow;
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
