/**
 * Runs the web search of a `web-` call before any upstream is called. Must never fail the call, which
 * continues without results. Loaded at the first such call.
 */
import type { SearchProvider } from '../ports/search-provider.ts';
import type { SearchSettings } from '../../config/settings/settings.ts';
import type { ChatRequest } from '../../wire/chat-request.ts';
import type { ChatCall } from '../call/chat-call.ts';
import type { SearchOutcome } from '../call/dispatch-report.ts';
import type { Clock } from '../ports/clock.ts';
import { searchMessage } from './search-message.ts';
import { searchQuery } from './search-query.ts';
import type { SearchResult } from '../ports/search-provider.ts';

export interface SearchPorts {
  clock: Clock;
  searchProvider: (settings: SearchSettings) => SearchProvider;
}

type SearchingCall = Pick<ChatCall, 'request' | 'snapshot' | 'signal' | 'states'>;

export interface SearchedRequest {
  request: ChatRequest;
  outcome: SearchOutcome;
}

/** How long an answer waits for the search. */
const budgetMs = 3_000;

/**
 * Whether the conversation has, or will have, turns with state. Some state is valid only while nothing before it
 * changes, and the results change with each turn.
 */
function mayContinue({ request, states }: SearchingCall): boolean {
  const { messages, tools, reasoning_effort: effort } = request;
  const reasons = typeof effort === 'string' && effort !== 'none';
  const hasTools = Array.isArray(tools) && tools.length > 0;
  return states.size > 0 || hasTools || reasons || messages.some(({ role }) => role === 'assistant');
}

/**
 * The request of a `web-` call with the search results as its first message, or beside the last user turn if the
 * conversation has or may get turns with state. Returns the request unchanged after any
 * failure. Takes at most three seconds. Never rejects.
 */
export async function withSearch(ports: SearchPorts, call: SearchingCall): Promise<SearchedRequest> {
  const { request } = call;
  const results = await searched(ports, call);
  if (typeof results === 'string') return { request, outcome: results };
  const day = new Date(ports.clock.now()).toISOString().slice(0, 10);
  const message = searchMessage(results, day);
  if (!message) return { request, outcome: 'empty' };
  const { messages } = request;
  const lastUser = mayContinue(call) ? messages.findLastIndex(({ role }) => role === 'user') : -1;
  // Not a system message there: dialects move those to the beginning.
  const placed =
    lastUser < 0 ? [message, ...messages] : messages.toSpliced(lastUser, 0, { ...message, role: 'user' });
  return { request: { ...request, messages: placed }, outcome: 'found' };
}

async function searched(
  { clock, searchProvider }: SearchPorts,
  { request, snapshot, signal }: SearchingCall,
): Promise<SearchResult[] | SearchOutcome> {
  const { search: settings } = snapshot.settings;
  if (!settings) return 'none';
  const query = searchQuery(request.messages);
  if (query === '') return 'no_query';
  if (signal.aborted) return 'timeout';

  const abort = new AbortController();
  const finished = new AbortController();
  const giveUp = (): void => finished.abort();
  signal.addEventListener('abort', giveUp);
  // The race ends the wait even when a provider ignores its abort signal.
  const timeUp = clock.sleep(budgetMs, finished.signal).then((): SearchOutcome => 'timeout');
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
