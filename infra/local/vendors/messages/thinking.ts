/** Thinking blocks with their signatures, and the cache of prompts: what depends on all that stands before a block. */
import { prefixHashes, countPromptTokens, type Counts, type PrefixMemory } from '../script.ts';
import { signPayload, hashSha256, verifyPayload } from '../vendor.ts';
import type { Block, MessagesBody } from './body.ts';
import { blocksOf, type MessagesCall } from './request.ts';

/**
 * Signatures of thinking blocks: each names the text, the account and everything before the block, so that an
 * altered text, another account and another conversation are seen without remembering anything.
 */
interface Signed {
  text: string;
  account: string;
  prefix: string;
}

const hashShort = (text: string): string => hashSha256(text).slice(0, 20);
const signFacts = (facts: Signed): string => signPayload({ ...facts, text: hashShort(facts.text) });

type SignedBlock = Extract<Block, { type: 'thinking' | 'redacted_thinking' }>;

/** A thinking block. Its signature covers the visible text. */
export const buildThinkingBlock = (facts: Signed): SignedBlock => ({
  type: 'thinking',
  thinking: facts.text,
  signature: signFacts(facts),
});

export const buildRedactedBlock = (facts: Signed): SignedBlock => ({
  type: 'redacted_thinking',
  data: signFacts({ ...facts, text: '' }),
});

/** Checks a block that came back. */
function findThinkingProblem(
  block: SignedBlock,
  { account, prefix }: Pick<Signed, 'account' | 'prefix'>,
): 'forged' | 'changed' | 'foreign' | 'bound' | undefined {
  const facts = verifyPayload(block.type === 'thinking' ? block.signature : block.data);
  if (!facts) return 'forged';
  if (facts['text'] !== hashShort(block.type === 'thinking' ? block.thinking : '')) return 'changed';
  if (facts['account'] !== account) return 'foreign';
  return facts['prefix'] === prefix ? undefined : 'bound';
}

const serializeWithoutMarks = (value: unknown): string =>
  JSON.stringify(value, (key: string, inner: unknown) => (key === 'cache_control' ? undefined : inner));

/**
 * A result's text and its only text block are one thing. What an answer's blocks say beside themselves may come back with
 * them or not.
 */
const normalizeBlock = (block: Block): unknown =>
  block.type === 'tool_result' && typeof block.content === 'string'
    ? { ...block, content: [{ type: 'text', text: block.content }] }
    : { ...block, caller: undefined, citations: undefined };

/** Tools that are loaded later come in where a result refers to them. */
const listFirstTools = ({ tools = [] }: MessagesBody) =>
  tools.filter(({ defer_loading: isLater }) => isLater !== true);

/** Tools, system, then each block with its role: less `cache_control`, texts as blocks. */
function listPromptParts(body: MessagesBody): string[] {
  const { system = [], messages } = body;
  return [
    ...listFirstTools(body).map((tool) => `tool ${serializeWithoutMarks(tool)}`),
    ...blocksOf(system).map((block) => `system ${serializeWithoutMarks(block)}`),
    ...messages.flatMap(({ role, content }) =>
      blocksOf(content).map((block) => `${role} ${serializeWithoutMarks(normalizeBlock(block))}`),
    ),
  ];
}

/** The hash of everything before the part at `index`. */
export const prefixBefore = (body: MessagesBody, more: Block[] = []): string[] => [
  'start',
  ...prefixHashes('claude', [
    ...listPromptParts(body),
    ...more.map((block) => `assistant ${serializeWithoutMarks(normalizeBlock(block))}`),
  ]),
];

/** How many parts stand before the messages. */
const countHeadParts = (body: MessagesBody): number =>
  listFirstTools(body).length + blocksOf(body.system ?? []).length;

/** Thinking belongs to an account and a model. */
export const ownerOf = ({ account, body }: MessagesCall): string => `${account} ${body.model}`;

/** Each thinking block that came back, with its problem. */
export function listReturnedThinking(call: MessagesCall) {
  const { body } = call;
  const account = ownerOf(call);
  const prefixes = prefixBefore(body);
  let part = countHeadParts(body);
  return body.messages.flatMap(({ content }, message) =>
    blocksOf(content).flatMap((block, index) => {
      const prefix = prefixes[part] ?? '';
      part += 1;
      if (block.type !== 'thinking' && block.type !== 'redacted_thinking') return [];
      return [{ message, index, problem: findThinkingProblem(block, { account, prefix }) }];
    }),
  );
}

type Ttl = '5m' | '1h';

/** The parts that end at a breakpoint, in the order of `listPromptParts`. */
export function listBreakpoints({ body }: MessagesCall): { part: number; ttl: Ttl }[] {
  const { system = [], messages } = body;
  const marks = [
    ...listFirstTools(body).map((tool) => tool.cache_control),
    ...blocksOf(system).map(markOf),
    ...messages.flatMap(({ content }) => blocksOf(content).map(markOf)),
  ];
  // The request's own mark stands for one at its end.
  const all = body.cache_control ? [...marks.slice(0, -1), marks.at(-1) ?? body.cache_control] : marks;
  return all.flatMap((mark, part) => (mark ? [{ part, ttl: mark.ttl ?? '5m' }] : []));
}

type Mark = { ttl?: Ttl } | null | undefined;
const markOf = (block: object) => ('cache_control' in block ? (block.cache_control as Mark) : undefined);

/** How far back from a breakpoint the vendor looks for what it has. */
const lookback = 20;

/** Reads the longest remembered prefix, and remembers those that end at breakpoints. */
export function countCached(call: MessagesCall, memory: PrefixMemory): Omit<Counts, 'output' | 'thinking'> {
  const parts = listPromptParts(call.body);
  const countTokensUpTo = (part: number): number => countPromptTokens(parts.slice(0, part + 1).join(''));
  const hashes = prefixHashes(`${call.account} ${call.body.model}`, parts);
  const marks = listBreakpoints(call).filter(({ part }) => countTokensUpTo(part) >= call.can.cachedFrom);
  const isKnown = (part: number): boolean => memory.has(hashes[part] ?? '');
  const read = marks
    .flatMap(({ part }) => Array.from({ length: Math.min(lookback, part + 1) }, (_, back) => part - back))
    .filter(isKnown)
    .reduce((furthest, part) => Math.max(furthest, part), -1);
  let from = read;
  const written = { '5m': 0, '1h': 0 };
  for (const { part, ttl } of marks.filter((mark) => mark.part > read)) {
    written[ttl] += countTokensUpTo(part) - (from < 0 ? 0 : countTokensUpTo(from));
    from = part;
  }
  memory.add(marks.map(({ part }) => hashes[part] ?? ''));
  const cacheRead = read < 0 ? 0 : countTokensUpTo(read);
  return {
    input: countPromptTokens(parts.join('')) - cacheRead - written['5m'] - written['1h'],
    cacheRead,
    cacheWrite5m: written['5m'],
    cacheWrite1h: written['1h'],
  };
}
