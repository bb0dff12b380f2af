import type { SearchProvider } from '../ports/search-provider.ts';
import type { SearchSettings } from '../../config/rows/settings.ts';
import type { ChatRequest } from '../../wire/chat-request.ts';
import type { ChatCall } from '../call/chat-call.ts';
import type { Clock } from '../ports/clock.ts';
import { searchMessage, searchQuery, searchTokensMax } from './search-message.ts';
import type { SearchResult } from '../ports/search-provider.ts';

export interface SearchPorts {
  clock: Clock;
  searchProvider: (settings: SearchSettings) => SearchProvider;
}

type SearchingCall = Pick<ChatCall, 'model' | 'request' | 'snapshot' | 'signal' | 'record'>;

/** How long an answer waits for the web. */
const budgetMs = 3_000;

/** Prompt tokens that a call may gain by its search: to be reserved beside those of its request. */
export const searchTokensOf = ({ model, snapshot }: Pick<ChatCall, 'model' | 'snapshot'>): number =>
  model.web && snapshot.settings.search ? searchTokensMax : 0;

/**
 * The request of a `web-` call with what the web says as its first message. Anything that goes wrong leaves the
 * request as it is, after three seconds at most; the log line has how it went. Never rejects.
 */
export async function withSearch(ports: SearchPorts, call: SearchingCall): Promise<ChatRequest> {
  if (!call.model.web) return call.request;
  const outcome = await searched(ports, call);
  if (typeof outcome === 'string') {
    call.record.search = outcome;
    return call.request;
  }
  const day = new Date(ports.clock.now()).toISOString().slice(0, 10);
  const message = searchMessage(outcome, day);
  call.record.search = message ? 'found' : 'empty';
  return message ? { ...call.request, messages: [message, ...call.request.messages] } : call.request;
}

type SearchFailure = 'none' | 'no_query' | 'timeout' | 'failed';

async function searched(
  { clock, searchProvider }: SearchPorts,
  { request, snapshot, signal }: SearchingCall,
): Promise<SearchResult[] | SearchFailure> {
  const { search: settings } = snapshot.settings;
  if (!settings) return 'none';
  const query = searchQuery(request.messages);
  if (query === '') return 'no_query';
  if (signal.aborted) return 'timeout';

  const abort = new AbortController();
  const finished = new AbortController();
  const giveUp = (): void => finished.abort();
  signal.addEventListener('abort', giveUp);
  // Raced as well as aborted: the wait ends even for a provider that does not look at its signal.
  const timeUp = clock.sleep(budgetMs, finished.signal).then((): SearchFailure => 'timeout');
  try {
    return await Promise.race([searchProvider(settings).search(query, abort.signal), timeUp]);
  } catch {
    return 'failed';
  } finally {
    signal.removeEventListener('abort', giveUp);
    finished.abort();
    abort.abort();
  }
}
