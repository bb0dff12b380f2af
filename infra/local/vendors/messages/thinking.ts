/** Thinking blocks with their signatures, and the cache of prompts: what depends on all that stands before a block. */
import { prefixHashes, promptTokens, type Counts, type PrefixMemory } from '../script.ts';
import { sealed, sha256, unsealed } from '../vendor.ts';
import { blocksOf, type Block, type MessagesBody, type MessagesCall } from './request.ts';

/**
 * Signatures of thinking blocks: each names the text, the account and everything before the block, so that an
 * altered text, another account and another conversation are seen without remembering anything.
 */
interface Signed {
  text: string;
  account: string;
  prefix: string;
}

const short = (text: string): string => sha256(text).slice(0, 20);
const signed = (facts: Signed): string => sealed({ ...facts, text: short(facts.text) });

type SignedBlock = Extract<Block, { type: 'thinking' | 'redacted_thinking' }>;

/** A thinking block. Its signature covers the visible text. */
export const thinkingBlock = (facts: Signed): SignedBlock => ({
  type: 'thinking',
  thinking: facts.text,
  signature: signed(facts),
});

export const redactedBlock = (facts: Signed): SignedBlock => ({
  type: 'redacted_thinking',
  data: signed({ ...facts, text: '' }),
});

/** Checks a block that came back. */
function thinkingProblem(
  block: SignedBlock,
  { account, prefix }: Pick<Signed, 'account' | 'prefix'>,
): 'forged' | 'changed' | 'foreign' | 'bound' | undefined {
  const facts = unsealed(block.type === 'thinking' ? block.signature : block.data);
  if (!facts) return 'forged';
  if (facts['text'] !== short(block.type === 'thinking' ? block.thinking : '')) return 'changed';
  if (facts['account'] !== account) return 'foreign';
  return facts['prefix'] === prefix ? undefined : 'bound';
}

const withoutMarks = (value: unknown): string =>
  JSON.stringify(value, (key: string, inner: unknown) => (key === 'cache_control' ? undefined : inner));

/**
 * A result's text and its only text block are one thing. What an answer's blocks say beside themselves may come back with
 * them or not.
 */
const plain = (block: Block): unknown =>
  block.type === 'tool_result' && typeof block.content === 'string'
    ? { ...block, content: [{ type: 'text', text: block.content }] }
    : { ...block, caller: undefined, citations: undefined };

/** Tools that are loaded later come in where a result refers to them. */
const firstTools = ({ tools = [] }: MessagesBody) =>
  tools.filter(({ defer_loading: isLater }) => isLater !== true);

/** Tools, system, then each block with its role: less `cache_control`, texts as blocks. */
function promptParts(body: MessagesBody): string[] {
  const { system = [], messages } = body;
  return [
    ...firstTools(body).map((tool) => `tool ${withoutMarks(tool)}`),
    ...blocksOf(system).map((block) => `system ${withoutMarks(block)}`),
    ...messages.flatMap(({ role, content }) =>
      blocksOf(content).map((block) => `${role} ${withoutMarks(plain(block))}`),
    ),
  ];
}

/** The hash of everything before the part at `index`. */
export const prefixBefore = (body: MessagesBody, more: Block[] = []): string[] => [
  'start',
  ...prefixHashes('claude', [
    ...promptParts(body),
    ...more.map((block) => `assistant ${withoutMarks(plain(block))}`),
  ]),
];

/** How many parts stand before the messages. */
const headLength = (body: MessagesBody): number =>
  firstTools(body).length + blocksOf(body.system ?? []).length;

/** Thinking belongs to an account and a model. */
export const ownerOf = ({ account, body }: MessagesCall): string => `${account} ${body.model}`;

/** Each thinking block that came back, with its problem. */
export function returnedThinking(call: MessagesCall) {
  const { body } = call;
  const account = ownerOf(call);
  const prefixes = prefixBefore(body);
  let part = headLength(body);
  return body.messages.flatMap(({ content }, message) =>
    blocksOf(content).flatMap((block, index) => {
      const prefix = prefixes[part] ?? '';
      part += 1;
      if (block.type !== 'thinking' && block.type !== 'redacted_thinking') return [];
      return [{ message, index, problem: thinkingProblem(block, { account, prefix }) }];
    }),
  );
}

type Ttl = '5m' | '1h';

/** The parts that end at a breakpoint, in the order of `promptParts`. */
export function breakpoints({ body }: MessagesCall): { part: number; ttl: Ttl }[] {
  const { system = [], messages } = body;
  const marks = [
    ...firstTools(body).map((tool) => tool.cache_control),
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
export function cachedCounts(call: MessagesCall, memory: PrefixMemory): Omit<Counts, 'output' | 'thinking'> {
  const parts = promptParts(call.body);
  const tokensUpTo = (part: number): number => promptTokens(parts.slice(0, part + 1).join(''));
  const hashes = prefixHashes(`${call.account} ${call.body.model}`, parts);
  const marks = breakpoints(call).filter(({ part }) => tokensUpTo(part) >= call.can.cachedFrom);
  const isKnown = (part: number): boolean => memory.has(hashes[part] ?? '');
  const read = marks
    .flatMap(({ part }) => Array.from({ length: Math.min(lookback, part + 1) }, (_, back) => part - back))
    .filter(isKnown)
    .reduce((furthest, part) => Math.max(furthest, part), -1);
  let from = read;
  const written = { '5m': 0, '1h': 0 };
  for (const { part, ttl } of marks.filter((mark) => mark.part > read)) {
    written[ttl] += tokensUpTo(part) - (from < 0 ? 0 : tokensUpTo(from));
    from = part;
  }
  memory.add(marks.map(({ part }) => hashes[part] ?? ''));
  const cacheRead = read < 0 ? 0 : tokensUpTo(read);
  return {
    input: promptTokens(parts.join('')) - cacheRead - written['5m'] - written['1h'],
    cacheRead,
    cacheWrite5m: written['5m'],
    cacheWrite1h: written['1h'],
  };
}
