/** Reads the JSON of a search provider's reply. Error messages never quote the provider. */
import type { UpstreamReply } from '../../upstreams/exchange.ts';

/** Size limit of a reply, because providers may include whole pages. */
const bodyBytesMax = 2 * 1024 * 1024;

/** Why a search failed. */
export class SearchFailure extends Error {
  override readonly name = 'SearchFailure';
}

/**
 * The JSON of a reply with status 200. Throws SearchFailure for any other reply and for one that is too long.
 */
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
