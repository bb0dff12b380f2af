/**
 * Converts messages to `system` and turns that alternate, a user's first. A pure function of the messages that only
 * appends: what a conversation has become stays as it is when messages are added, so that caches and thinking that is
 * bound to its prefix stay valid.
 */
import type { ChatMessage } from '../../../wire/chat-request.ts';
import type { JsonRecord } from '../../../wire/json-record.ts';
import { sentIds, type SentIds } from '../../calls/sent-ids.ts';
import type { RequestSettings } from '../../dialect.ts';
import { continuation } from '../../quirks.ts';
import { assistantBlocks } from './assistant-blocks.ts';
import { cacheControlOf, contentBlocks, textBlocks, withMessageBreakpoint } from './part-blocks.ts';

export interface Turn {
  role: 'user' | 'assistant';
  content: JsonRecord[];
}

/** A turn that may still grow. Results of tools stand before all else, as the vendor wants it. */
interface OpenTurn extends Turn {
  results: JsonRecord[];
}

export interface Conversation {
  system: JsonRecord[];
  turns: Turn[];
}

const isSystem = ({ role }: ChatMessage): boolean => role === 'system' || role === 'developer';

/** Throws CannotCarry for content that has no form here. */
export function conversation(messages: readonly ChatMessage[], settings: RequestSettings): Conversation {
  const firstTurn = messages.findIndex((message) => !isSystem(message));
  const leading = messages.slice(0, firstTurn < 0 ? messages.length : firstTurn);
  const system = leading.flatMap((message, index) =>
    withMessageBreakpoint(contentBlocks(message.content, `messages[${index}]`), message),
  );
  const form = settings.quirks.callIds === 'alnum9' ? 'alnum9' : 'word64';
  const ids = sentIds(messages, { callIds: settings.callIds, form });
  const turns: OpenTurn[] = [];
  const add = (role: Turn['role'], content: JsonRecord[]): void => {
    turns.push({ role, results: [], content });
  };
  for (const [offset, message] of messages.slice(leading.length).entries()) {
    const path = `messages[${leading.length + offset}]`;
    if (message.role === 'assistant') {
      const state = settings.without.has('state') ? undefined : settings.states.get(message);
      const content = assistantBlocks({ message, path, ids: ids.calls(message), state });
      // Two turns of the assistant in a row are two answers. An answer at the end is no beginning to continue: most
      // models refuse that, and clients of Chat Completions do not mean it. An empty answer leaves what came before it.
      if (turns.at(-1)?.role !== 'user') add('user', textBlocks(continuation));
      if (content.length > 0) add('assistant', content);
    } else addToUser(turns, userBlocks(message, { path, ids }));
  }
  if (turns.at(-1)?.role !== 'user') add('user', textBlocks(continuation));
  return { system, turns: turns.map(closed) };
}

const closed = ({ role, results, content }: OpenTurn): Turn => ({
  role,
  content: results.length > 0 ? [...results, ...content] : content,
});

function addToUser(turns: OpenTurn[], blocks: JsonRecord[]): void {
  if (blocks.length === 0) return;
  let last = turns.at(-1);
  if (last?.role !== 'user') {
    last = { role: 'user', results: [], content: [] };
    turns.push(last);
  }
  for (const block of blocks) (isResult(block) ? last.results : last.content).push(block);
}

const isResult = ({ type }: JsonRecord): boolean => type === 'tool_result';

function userBlocks(message: ChatMessage, { path, ids }: { path: string; ids: SentIds }): JsonRecord[] {
  const content = contentBlocks(message.content, path);
  if (message.role === 'tool') {
    const result = { type: 'tool_result', tool_use_id: ids.result(message) };
    return [{ ...result, ...(content.length > 0 && { content }), ...cacheControlOf(message) }];
  }
  // Moved to the front it would change the prefix of all turns before it.
  const blocks = isSystem(message) ? content.map(asInstruction) : content;
  return withMessageBreakpoint(blocks, message);
}

const asInstruction = (block: JsonRecord): JsonRecord =>
  block['type'] === 'text'
    ? { ...block, text: `<system_instruction>\n${String(block['text'])}\n</system_instruction>` }
    : block;
