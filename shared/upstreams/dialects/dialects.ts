/** The registry of dialects, one line each: facts that are needed before a dialect is loaded, and how it is loaded. */
import type { Dialect, DialectCode } from '../dialect.ts';

interface Registered {
  path: string;
  /** The vendor refuses lower limits on output tokens. */
  outputTokensMin?: number;
  /** Calls in background windows can be submitted and polled. */
  takesSubmissions?: true;
  load(): Promise<DialectCode>;
}

/** Loaded by the first call that needs it, so that an unused dialect does not slow down the start. */
const dialects = {
  chat: { path: '/chat/completions', load: async () => (await import('./chat/request.ts')).chat },
  messages: {
    path: '/messages',
    load: async () => (await import('./messages/request.ts')).messages,
  },
  responses: {
    path: '/responses',
    outputTokensMin: 16,
    takesSubmissions: true,
    load: async () => (await import('./responses/request.ts')).responses,
  },
} satisfies Record<string, Registered>;

/**
 * For calls that are not conversations. All calls of the endpoint of that name use this dialect, if the channel's type
 * speaks it, and no others do.
 */
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

/** Rejects for an unknown name; rows are checked against `dialectNames`. */
export async function loadDialect(name: string): Promise<Dialect> {
  const line = lineOf(name);
  if (!line) throw new Error(`no dialect ${name}`);
  return { ...(await line.load()), name, path: line.path };
}

export const dialectPathOf = (name: string): string | undefined => lineOf(name)?.path;

/** A lower limit is raised to it. */
export const outputTokensMin = (name: string): number => lineOf(name)?.outputTokensMin ?? 1;

export const takesSubmissions = (name: string): boolean => lineOf(name)?.takesSubmissions === true;

/** Operators sometimes paste an address that already has one of them. */
export const dialectPaths: readonly string[] = Object.values(registered).map(({ path }) => path);
