import { estimateTokens } from '../billing/estimate-tokens.ts';
import type { ChatMessage, ChatRequest } from '../wire/chat-request.ts';

/** What a message costs beside its text: role and separators. Source: OpenAI's token counting guide. */
const tokensPerMessage = 4;
/** An image at low detail is 85 tokens at OpenAI, at high detail about 765 for a common size. */
const tokensPerImage = 765;

/** An estimate of a request's prompt tokens, for answers whose upstream does not tell. Whole tokens. */
export function promptTokens(request: ChatRequest): number {
  let tokens = request.tools ? estimateTokens(JSON.stringify(request.tools)) : 0;
  for (const message of request.messages) tokens += tokensPerMessage + messageTokens(message);
  return Math.ceil(tokens);
}

function messageTokens(message: ChatMessage): number {
  const calls = message.tool_calls ? estimateTokens(JSON.stringify(message.tool_calls)) : 0;
  if (typeof message.content === 'string') return calls + estimateTokens(message.content);
  let tokens = calls;
  for (const part of message.content ?? [])
    tokens += part.type === 'text' ? estimateTokens(part.text ?? '') : tokensPerImage;
  return tokens;
}
