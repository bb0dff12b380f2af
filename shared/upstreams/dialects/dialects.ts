/** The registry of dialects, one line each: its path, and how it is loaded, which may be by `import()`. */
import type { Dialect } from '../dialect.ts';
import { chat } from './chat/chat-dialect.ts';

const dialects = {
  chat: { path: chat.path, load: async () => chat },
};

export type DialectName = keyof typeof dialects;
/** The dialect that every channel speaks. */
const defaultDialect: DialectName = 'chat';

export const loadDialect = (name: DialectName = defaultDialect): Promise<Dialect> => dialects[name].load();

/** The paths that are appended to base addresses. Operators sometimes paste an address with its path. */
export const dialectPaths: readonly string[] = Object.values(dialects).map(({ path }) => path);
