/** Queries the search provider of the settings over the upstreams' transport. Error messages never quote the provider. */
import type { SearchSettings } from '../../config/settings.ts';
import {
  SearchRefused,
  type UpstreamTransport,
  type SearchProvider,
  type SearchResult,
} from '../../relay/ports/host.ts';
import type { SecretStore } from '../../relay/ports/config-store.ts';
import { hostOf } from '../../upstreams/endpoint-rules.ts';
import { TransportError, type UpstreamReply } from '../../upstreams/exchange.ts';
import { isRecord, parseJson, type JsonRecord } from '../../wire/json.ts';

/** SearXNG's "Search API" must have the format `json` enabled. */
const dialects: Record<SearchSettings['type'], (query: string, settings: SearchSettings) => Dialect> = {
  searxng: (q, { language }) => ({
    contentType: 'application/x-www-form-urlencoded',
    body: new URLSearchParams({
      q,
      format: 'json',
      categories: 'general',
      ...(language !== undefined && { language }),
    }).toString(),
  }),
  // Cheaper and faster than advanced depth.
  tavily: (query, { results }) => ({
    contentType: 'application/json',
    body: JSON.stringify({ query, max_results: results, search_depth: 'basic' }),
  }),
};

interface Dialect {
  contentType: string;
  body: string;
}

export interface SearchDeps {
  transport: UpstreamTransport;
  secrets: Pick<SecretStore, 'read'>;
}

const connectTimeoutMs = 2_000;

export function createSearchProviders({ transport, secrets }: SearchDeps) {
  return (settings: SearchSettings): SearchProvider => ({
    async search(query, signal, sent) {
      const { endpoint, secret, results, type } = settings;
      const authorization =
        secret === undefined ? undefined : `Bearer ${await secrets.read(secret, hostOf(endpoint))}`;
      const { contentType, body } = dialects[type](query, settings);
      const request = {
        url: `${endpoint}/search`,
        headers: {
          'content-type': contentType,
          accept: 'application/json',
          ...(authorization !== undefined && { authorization }),
        },
        body,
        connectTimeoutMs,
      };
      sent();
      const reply = await transport.send(request, signal).catch((error: unknown) => {
        throw isUnsent(error) ? new SearchRefused('No connection.', { cause: error }) : error;
      });
      return readResults(await readJson(reply)).slice(0, results);
    },
  });
}

const isUnsent = (error: unknown): boolean => error instanceof TransportError && error.kind === 'connect';

/** Throws SearchFailure if the reply has no list of results. */
function readResults(answer: unknown): SearchResult[] {
  const results = isRecord(answer) ? answer['results'] : undefined;
  if (!Array.isArray(results)) throw new SearchFailure('The search provider answered without results.');
  return results.flatMap((result: unknown) => (isRecord(result) ? readResult(result) : []));
}

/** SearXNG writes `publishedDate`, Tavily `published_date`. */
function readResult(fields: JsonRecord): SearchResult[] {
  const url = URL.parse(readTextField(fields, 'url'));
  const text = readTextField(fields, 'content');
  const title = readTextField(fields, 'title');
  if (!url || !/^https?:$/.test(url.protocol) || (text === '' && title === '')) return [];
  const date = readTextField(fields, 'publishedDate') || readTextField(fields, 'published_date');
  return [{ title, url: url.href, text, ...(date !== '' && { date }) }];
}

function readTextField(fields: JsonRecord, name: string): string {
  const value = fields[name];
  return typeof value === 'string' ? value.trim() : '';
}

const bodyBytesMax = 2 * 1024 * 1024;

class SearchFailure extends Error {
  override readonly name = 'SearchFailure';
}

/** Throws SearchRefused unless the status is 200, SearchFailure if the reply is too long or not JSON. */
async function readJson(reply: UpstreamReply): Promise<unknown> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  if (reply.status !== 200) throw new SearchRefused(`The search provider answered ${reply.status}.`);
  for await (const chunk of reply.body) {
    bytes += chunk.byteLength;
    if (bytes > bodyBytesMax) throw new SearchFailure('The answer of the search provider is too large.');
    chunks.push(chunk);
  }
  const json = parseJson(Buffer.concat(chunks).toString('utf8'));
  if (json === undefined) throw new SearchFailure('The search provider did not answer with JSON.');
  return json;
}
