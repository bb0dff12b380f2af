/** Every dialect that upstreams are spoken to in, one line each. One that few channels speak can be loaded by `import()`. */
import type { Dialect } from '../dialect.ts';
import { chat } from './chat/chat-dialect.ts';

const dialects = { chat };

export type DialectName = keyof typeof dialects;
/** What every channel speaks. */
const defaultDialect: DialectName = 'chat';

export const loadDialect = async (name: DialectName = defaultDialect): Promise<Dialect> => dialects[name];

/** What stands behind the base address of a channel, and is pasted with it now and then. */
export const dialectPaths: readonly string[] = Object.values(dialects).map(({ path }) => path);
