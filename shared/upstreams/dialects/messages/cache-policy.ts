/**
 * Places cache breakpoints in a request. Source: the vendor's page about prompt caching, November 2026.
 *
 * - A client that set breakpoints knows its prompt: its own go up and no others. More than four are refused by the
 *   vendor, so they are refused here, before anything is charged.
 * - A write costs a quarter more than plain input and is lost if nobody reads it within five minutes. So a call gets
 *   breakpoints only if another one is likely to follow: it has tools, a turn of the assistant, or a
 *   `prompt_cache_key`.
 * - A prompt shorter than the model's minimum is not cached whatever it says.
 * - The ends of the two last user turns: the last is written now and read by the next call; the one before was written
 *   by the previous call and is read now.
 * - The end of `system`: read by other conversations with the same tools and instructions.
 * - The end of `tools`: read by those with other instructions.
 * - The vendor looks for an earlier write in the 20 blocks before a breakpoint. A turn with more blocks gets an anchor
 *   at its 20th, which is at the same place in later calls. The one at the end of `tools` makes room for it: the end
 *   of `system` covers the tools.
 */
import { asRecord, isRecord, type JsonRecord } from '../../../wire/json.ts';
import { CannotCarry } from '../../dialect.ts';
import type { Quirks } from '../../quirks.ts';
import type { MessagesConversation } from './conversation.ts';

const breakpointsMax = 4;
const lookbackBlocks = 20;

interface Prompt extends MessagesConversation {
  tools: JsonRecord[];
}

/** Throws CannotCarry for more than four breakpoints of the client. */
export function addBreakpoints(
  prompt: Prompt,
  {
    hasCacheKey,
    cacheMinTokens,
    cacheBreakpointsMax: cacheBreakpoints,
  }: { hasCacheKey: boolean } & Pick<Quirks, 'cacheMinTokens' | 'cacheBreakpointsMax'>,
): Prompt {
  const count = countClientBreakpoints(prompt);
  if (count > breakpointsMax) {
    throw new CannotCarry(
      'cache_control',
      `At most ${breakpointsMax} cache breakpoints can be set, not ${count}.`,
    );
  }
  const { tools, turns } = prompt;
  const isReadAgain = hasCacheKey || tools.length > 0 || turns.some(({ role }) => role === 'assistant');
  if (count > 0 || !isReadAgain || !hasAtLeast(cacheMinTokens, prompt)) return prompt;
  const chosen = new Set(chooseBlocks(prompt).slice(0, cacheBreakpoints));
  const mark = (blocks: JsonRecord[]): JsonRecord[] =>
    blocks.map((block) => (chosen.has(block) ? { ...block, cache_control: { type: 'ephemeral' } } : block));
  return {
    tools: mark(tools),
    system: mark(prompt.system),
    turns: turns.map(({ role, content }) => ({ role, content: mark(content) })),
  };
}

/** The blocks that end a section worth caching, most valuable first. */
function chooseBlocks({ tools, system, turns }: Prompt): JsonRecord[] {
  const [before, last] = turns.filter(({ role }) => role === 'user').slice(-2);
  const long = [last, before].find((turn) => turn && turn.content.length > lookbackBlocks);
  const anchor = long?.content[lookbackBlocks - 1];
  const ends = [
    (last ?? before)?.content.at(-1),
    before?.content.at(-1),
    system.at(-1),
    anchor,
    tools.at(-1),
  ];
  return [...new Set(ends.filter((block) => block !== undefined))];
}

const blocksOf = ({ tools, system, turns }: Prompt): JsonRecord[] => [
  ...tools,
  ...system,
  ...turns.flatMap(({ content }) => content),
];

/** Counts those on blocks and inside results of tools. */
const countClientBreakpoints = (prompt: Prompt): number => {
  const blocks: unknown[] = blocksOf(prompt);
  const inside = blocks.map((block) => asRecord(block)['content']).filter(Array.isArray);
  return [...blocks, ...inside.flat()].filter((block) => isRecord(asRecord(block)['cache_control'])).length;
};

/** A lower bound for an image or a document. */
const mediaTokens = 500;
/** Code and English have about four characters per token, other text one or two. */
const charactersPerToken = { ascii: 4, other: 1.5 };

/** Estimates only as far as the answer needs. */
function hasAtLeast(tokens: number, prompt: Prompt): boolean {
  let remainder = tokens;
  for (const block of blocksOf(prompt)) {
    remainder -= tokensOf(block, remainder);
    if (remainder <= 0) return true;
  }
  return false;
}

function tokensOf(value: unknown, tokensMax: number): number {
  if (typeof value === 'string')
    return estimateTextTokens(value.slice(0, Math.ceil(tokensMax * charactersPerToken.ascii)));
  if (Array.isArray(value)) return value.reduce((sum: number, each) => sum + tokensOf(each, tokensMax), 0);
  if (!isRecord(value)) return 0;
  if (value['type'] === 'image' || value['type'] === 'document') return mediaTokens;
  return tokensOf(Object.entries(value).flat(), tokensMax);
}

function estimateTextTokens(text: string): number {
  let ascii = 0;
  for (let at = 0; at < text.length; at += 1) if (text.charCodeAt(at) < 128) ascii += 1;
  return ascii / charactersPerToken.ascii + (text.length - ascii) / charactersPerToken.other;
}
