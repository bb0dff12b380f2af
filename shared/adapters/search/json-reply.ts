/** The JSON of a search provider's reply. Errors are in our own words: never the provider's. */
import type { UpstreamReply } from '../../upstreams/exchange.ts';

/** Providers may include whole pages; more than this is not read. */
const bodyBytesMax = 2 * 1024 * 1024;

/** Why a search failed. */
export class SearchFailure extends Error {
  override readonly name = 'SearchFailure';
}

/** The JSON of a 200. Throws SearchFailure for every other answer, and stops reading one that is too long. */
export async function readJson(reply: UpstreamReply): Promise<unknown> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of reply.body) {
    if (reply.status !== 200) throw new SearchFailure(`The search provider answered ${reply.status}.`);
    bytes += part.byteLength;
    if (bytes > bodyBytesMax) throw new SearchFailure('The search provider sends too much.');
    parts.push(part);
  }
  try {
    return JSON.parse(Buffer.concat(parts).toString('utf8'));
  } catch {
    throw new SearchFailure('The search provider did not answer with JSON.');
  }
}
