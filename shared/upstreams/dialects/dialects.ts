/** The registry of dialects, one line each: its path, and how it is loaded, which may be by `import()`. */
import type { Dialect } from '../dialect.ts';

/** Loaded at the first call that needs it, so that a dialect that no channel speaks costs the start nothing. */
const dialects = {
  chat: { path: '/chat/completions', load: async () => (await import('./chat/chat-dialect.ts')).chat },
  messages: {
    path: '/messages',
    load: async () => (await import('./messages/messages-dialect.ts')).messages,
  },
  responses: {
    path: '/responses',
    load: async () => (await import('./responses/responses-dialect.ts')).responses,
  },
};

export type DialectName = keyof typeof dialects;
export const dialectNames = Object.keys(dialects) as DialectName[];
/** The dialect of rows and types that name none. */
export const defaultDialect: DialectName = 'chat';

/** Rejects for a name that is no dialect's; rows are checked against `dialectNames`. */
export async function loadDialect(name: string): Promise<Dialect> {
  if (!Object.hasOwn(dialects, name)) throw new Error(`no dialect ${name}`);
  return await dialects[name as DialectName].load();
}

/** The path of a dialect. Undefined: there is no such dialect. */
export const dialectPath = (name: string): string | undefined =>
  Object.hasOwn(dialects, name) ? dialects[name as DialectName].path : undefined;

/** The paths that are appended to base addresses. Operators sometimes paste an address with its path. */
export const dialectPaths: readonly string[] = Object.values(dialects).map(({ path }) => path);
