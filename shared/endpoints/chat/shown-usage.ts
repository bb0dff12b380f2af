import type { ChatUsage } from '../../wire/chat-response.ts';

/** Usage with every detail that clients read, zeros included. */
export const shownUsage = (usage: ChatUsage): ChatUsage => {
  const {
    cached_tokens: cached = 0,
    cache_write_tokens: written = 0,
    cache_write_1h_tokens: writtenHour = 0,
  } = usage.prompt_tokens_details ?? {};
  return {
    prompt_tokens: usage.prompt_tokens,
    completion_tokens: usage.completion_tokens,
    total_tokens: usage.total_tokens,
    prompt_tokens_details: {
      cached_tokens: cached,
      cache_write_tokens: written,
      ...(writtenHour > 0 && { cache_write_1h_tokens: writtenHour }),
    },
    completion_tokens_details: {
      reasoning_tokens: usage.completion_tokens_details?.reasoning_tokens ?? 0,
    },
  };
};
