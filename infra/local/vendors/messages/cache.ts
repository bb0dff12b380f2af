import { prefixHashes, type PrefixMemory } from '../script/prefix-memory.ts';
import { promptTokens } from '../script/tokens.ts';
import { blocksOf, type MessagesCall } from './call.ts';
import { promptParts } from './thinking.ts';

type Ttl = '5m' | '1h';

/** The parts that end at a breakpoint, in the order of `promptParts`. */
export function breakpoints({ body }: MessagesCall): { part: number; ttl: Ttl }[] {
  const { tools = [], system = [], messages } = body;
  const marks = [
    ...tools.map((tool) => tool.cache_control),
    ...blocksOf(system).map(markOf),
    ...messages.flatMap(({ content }) => blocksOf(content).map(markOf)),
  ];
  // The request's own mark stands for one at its end.
  const all = body.cache_control ? [...marks.slice(0, -1), marks.at(-1) ?? body.cache_control] : marks;
  return all.flatMap((mark, part) => (mark ? [{ part, ttl: mark.ttl ?? '5m' }] : []));
}

type Mark = { ttl?: Ttl } | null | undefined;
const markOf = (block: object) => ('cache_control' in block ? (block.cache_control as Mark) : undefined);

export interface CacheCounts {
  input: number;
  cacheRead: number;
  cacheWrite5m: number;
  cacheWrite1h: number;
}

/** How far back from a breakpoint the vendor looks for what it has. */
const lookback = 20;

/** Reads the longest remembered prefix, and remembers those that end at breakpoints. */
export function cachedCounts(call: MessagesCall, memory: PrefixMemory): CacheCounts {
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
