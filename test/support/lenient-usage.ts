import { checkUsage } from '../../shared/billing/usage.ts';
import type { ChatChunk, ChatUsage, ReportedUsage } from '../../shared/wire/chat-response.ts';

const none = { below: 0, unbiased: 0 };

/** Reported counts as clients would see them, for any answer. Unknown counts are zero. */
export const lenientUsage = (reported: ReportedUsage | undefined): ChatUsage =>
  checkUsage(reported, {
    streamed: { visible: none, all: none },
    inputBelow: () => 0,
    inputUnbiased: () => 0,
    inputMax: () => Infinity,
    outputMax: Infinity,
    isCut: false,
  }).usage;

/** The chunks of a reader followed by the usage, as the meter appends it. */
export function withUsage(chunks: ChatChunk[], reported: ReportedUsage | undefined): ChatChunk[] {
  const last = chunks.at(-1);
  return last && reported ? [...chunks, { ...last, choices: [], usage: lenientUsage(reported) }] : chunks;
}
