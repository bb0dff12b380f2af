/**
 * Queries the search provider named in the settings. Uses the transport of upstreams: kept connections,
 * public addresses only, no redirects.
 */
import type { SearchSettings } from '../../config/settings/settings.ts';
import type { UpstreamTransport } from '../../relay/ports/upstream-transport.ts';
import type { SecretStore } from '../../relay/ports/stores/secret-store.ts';
import type { SearchProvider } from '../../relay/ports/search-provider.ts';
import type { SearchDialect } from './search-dialect.ts';
import { searxngDialect } from './searxng.ts';
import { readJson } from './json-reply.ts';
import { readResults } from './search-results.ts';
import { tavilyDialect } from './tavily.ts';

export interface SearchParts {
  transport: UpstreamTransport;
  secrets: Pick<SecretStore, 'read'>;
}

const dialects: Record<SearchSettings['type'], SearchDialect> = {
  searxng: searxngDialect,
  tavily: tavilyDialect,
};

const connectTimeoutMs = 2_000;

export function searchProviders({ transport, secrets }: SearchParts) {
  return (settings: SearchSettings): SearchProvider => ({
    async search(query, signal) {
      const { endpoint, secret, results, type } = settings;
      const authorization = secret === undefined ? undefined : `Bearer ${await secrets.read(secret)}`;
      const dialect = dialects[type];
      const request = {
        url: `${endpoint}/search`,
        headers: {
          'content-type': dialect.contentType,
          accept: 'application/json',
          ...(authorization !== undefined && { authorization }),
        },
        body: dialect.body(query, settings),
        connectTimeoutMs,
      };
      const reply = await transport.send(request, signal);
      return readResults(await readJson(reply)).slice(0, results);
    },
  });
}
