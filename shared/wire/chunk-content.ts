import type { ChatChunk, ChatDelta } from './chat-response.ts';

/** Whether a chunk has content that a client sees. The first such chunk opens the answer. */
export const hasContent = (chunk: ChatChunk): boolean =>
  chunk.choices.some(
    ({ delta }) =>
      deltaText(delta) !== '' || (delta.tool_calls?.length ?? 0) > 0 || (delta.images?.length ?? 0) > 0,
  );

/** All text of a delta, including the names and arguments of tool calls. */
export function deltaText(delta: ChatDelta): string {
  const calls = (delta.tool_calls ?? []).map(
    ({ function: called, custom }) =>
      (called?.name ?? '') + (called?.arguments ?? '') + (custom?.name ?? '') + (custom?.input ?? ''),
  );
  return (delta.content ?? '') + (delta.reasoning_content ?? '') + (delta.refusal ?? '') + calls.join('');
}
