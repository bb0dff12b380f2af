/** The registry of dialects, one line each: what is asked of it before it is loaded, and how it is loaded. */
import type { Dialect, DialectCode } from '../dialect.ts';

interface Registered {
  path: string;
  /** The lowest limit on output tokens that it sends: the vendor refuses lower ones. Absent: 1. */
  outputTokensMin?: number;
  load(): Promise<DialectCode>;
}

/** Loaded at the first call that needs it, so that a dialect that no channel speaks costs the start nothing. */
const dialects = {
  chat: { path: '/chat/completions', load: async () => (await import('./chat/request.ts')).chat },
  messages: {
    path: '/messages',
    load: async () => (await import('./messages/request.ts')).messages,
  },
  responses: {
    path: '/responses',
    outputTokensMin: 16,
    load: async () => (await import('./responses/request.ts')).responses,
  },
} satisfies Record<string, Registered>;

/** Of calls that are no conversation: all calls of the endpoint of the name go up in it, where the channel's type speaks it, and no others. */
const ownDialects = {
  embeddings: { path: '/embeddings', load: async () => (await import('./embeddings.ts')).embeddings },
} satisfies Record<string, Registered>;

const registered: Record<string, Registered> = { ...dialects, ...ownDialects };
const lineOf = (name: string): Registered | undefined =>
  Object.hasOwn(registered, name) ? registered[name] : undefined;

export type DialectName = keyof typeof dialects;
export const dialectNames = Object.keys(dialects) as DialectName[];
export const defaultDialect: DialectName = 'chat';

export const ownDialectNames = Object.keys(ownDialects);

/** Rejects for a name that is no dialect's; rows are checked against `dialectNames`. */
export async function loadDialect(name: string): Promise<Dialect> {
  const line = lineOf(name);
  if (!line) throw new Error(`no dialect ${name}`);
  return { ...(await line.load()), name, path: line.path };
}

export const dialectPathOf = (name: string): string | undefined => lineOf(name)?.path;

/** The lowest limit on output tokens that a dialect sends; a lower one is raised to it. */
export const outputTokensMin = (name: string): number => lineOf(name)?.outputTokensMin ?? 1;

/** The paths that are appended to base addresses. Operators sometimes paste an address with its path. */
export const dialectPaths: readonly string[] = Object.values(registered).map(({ path }) => path);
