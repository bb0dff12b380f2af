/** What a search may add to a prompt. The reservation counts it before the search. */
import type { Snapshot } from '../../config/snapshot.ts';

/** Tokens, estimated from above. */
export const searchTokensMax = 4_000;

/** Maximum prompt tokens that a search adds to a `web-` call; reserved in addition to those of its request. */
export const searchTokensOf = ({ settings }: Snapshot): number => (settings.search ? searchTokensMax : 0);
