import type { ChatContentPart, ChatMessage, ChatRequest } from '../wire/chat-request.ts';

/**
 * Estimates the tokens of a text (a fraction, so that pieces add up) without a tokenizer, which takes longer to load than
 * most first tokens take to arrive. A token is about 4 characters of ASCII text, or 1.3 of other text; measured 5 to 16 %
 * off. Bills use it only where the upstream reports no counts.
 */
export function estimateTokens(text: string): number {
  let ascii = 0;
  for (let i = 0; i < text.length; i += 1) if (text.charCodeAt(i) < 0x80) ascii += 1;
  return ascii / 4 + (text.length - ascii) * 0.75;
}

/** Tokens of a message beside its text: role and separators. Source: OpenAI's token counting guide. */
const tokensPerMessage = 4;
/** An image at low detail is 85 tokens at OpenAI, at high detail about 765 for a common size. */
const tokensPerImage = 765;

/** An estimate of a request's prompt tokens, for upstreams that report no usage. Whole tokens. */
export function promptTokens(request: ChatRequest): number {
  const { messages, ...fields } = request;
  return Math.ceil(structuresTokens(fields) + sumOf(messages, messageTokens));
}

function messageTokens({ content, ...fields }: ChatMessage): number {
  const beside = tokensPerMessage + structuresTokens(fields) + longTextTokens(fields);
  if (typeof content === 'string') return beside + estimateTokens(content);
  return beside + sumOf(content ?? [], partTokens);
}

function partTokens(part: ChatContentPart): number {
  if (part.type === 'text') return estimateTokens(part.text ?? '');
  return part.type === 'image_url' ? tokensPerImage : estimateTokens(JSON.stringify(part));
}

/** Tools, schemas and any other structured field may become part of the prompt, so all of them count. */
const structuresTokens = (fields: object): number =>
  sumOf(Object.values(fields), (value) =>
    typeof value === 'object' && value !== null ? estimateTokens(JSON.stringify(value)) : 0,
  );

/** Fields such as `reasoning_content`. Roles, names and ids are covered by the tokens per message. */
const longTextTokens = (fields: object): number =>
  sumOf(Object.values(fields), (value) =>
    typeof value === 'string' && value.length > 100 ? estimateTokens(value) : 0,
  );

const sumOf = <Item>(items: readonly Item[], tokensOf: (item: Item) => number): number =>
  items.reduce((sum, item) => sum + tokensOf(item), 0);
