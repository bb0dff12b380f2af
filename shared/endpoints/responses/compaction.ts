/**
 * Compaction: a conversation goes on from one item in the place of what came before it. The item is sealed for its account. It
 * holds what an upstream wrote, which that one alone can read, or a summary by the model, which every model can. Source: OpenAI's
 * pages "Compaction" and "Compact a response", and openai/codex (codex-rs/core/src/compact_remote.rs and compact_remote_v2.rs).
 */
import type { ChatMessage } from '../../wire/canonical-call.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import type { JsonRecord } from '../../wire/json.ts';
import type { PlacedItem } from '../endpoint.ts';

/** Codex keeps them in its history under these types. */
export const compactionTypes = new Set(['compaction', 'compaction_summary', 'context_compaction']);
/** As the last item of an input: the answer is a compaction item. */
export const triggerType = 'compaction_trigger';

/**
 * A user's message, since every upstream takes one at any place, also as the first: a system message would move to the front of
 * some, which is another prefix for their caches, and a turn of the assistant could not begin a conversation.
 */
const writeUserMessage = (content: string): ChatMessage => ({ role: 'user', content });

/** In words what `compaction_trigger` asks for. The tools stay declared, so that caches before it hold. */
export const writeSummaryRequest = (): ChatMessage =>
  writeUserMessage(
    `The conversation up to here is going to be replaced by a summary, since it has become too large. Write that summary now, for
whoever goes on with the work and will see nothing else of it. Keep:
- what the user wants, with every constraint and preference
- facts, names, numbers, paths and identifiers, exactly as they stand
- what was done and found out, what failed and why, and what was decided
- the state of things, and what comes next
If an earlier summary stands above, keep of it what still matters. Call no tool and ask nothing: the whole answer is the summary.`,
  );

export const summarize = (summary: string): ChatMessage =>
  writeUserMessage(`What came before in this conversation was replaced by this summary of it:\n\n${summary}`);

/** In the place of an item that only its own upstream can read. */
export const writeLostTurnsNote = (): ChatMessage =>
  writeUserMessage(
    'What came before in this conversation was compacted by another provider and cannot be read any more.',
  );

/** An incomplete summary must not replace a conversation. */
export const refuseMissingSummary = (): InvalidRequest =>
  new InvalidRequest(
    'no_summary',
    'model',
    'The model did not finish the summary of the conversation. Try again with a higher `max_output_tokens` or more balance.',
  );

export const refuseItemsAfter = (param: string): InvalidRequest =>
  new InvalidRequest(
    'invalid_value',
    `${param}.type`,
    `"${triggerType}" must be the last item of the input: it asks for a summary of the items before it.`,
  );

/** UTF-16 code units as JSON: 64,000 tokens, as many as OpenAI keeps. */
const keptLengthMax = 256 * 1024;

/** The user's own messages, which stay beside the item as they are: of what is too much the newest, since the item tells of all. */
export function selectKeptMessages(placed: readonly PlacedItem[], suffix: string): JsonRecord[] {
  let length = 0;
  const fits = ({ item }: PlacedItem): boolean => {
    if ((item['type'] ?? 'message') !== 'message' || item['role'] !== 'user') return false;
    const own = JSON.stringify(item).length;
    if (length + own > keptLengthMax) return false;
    length += own;
    return true;
  };
  const kept = placed.toReversed().filter(fits).toReversed();
  return kept.map(({ item: { id, content } }, i) => ({
    id: typeof id === 'string' ? id : `msg_${suffix}_in${i}`,
    type: 'message',
    role: 'user',
    status: 'completed',
    content: typeof content === 'string' ? [{ type: 'input_text', text: content }] : content,
  }));
}
