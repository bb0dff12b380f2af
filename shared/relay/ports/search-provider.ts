/** Web search. */

export interface SearchResult {
  title: string;
  url: string;
  text: string;
  /** As the provider writes it. */
  date?: string | undefined;
}

export interface SearchProvider {
  /** May be empty. Rejects when the provider does not answer, or not with results. */
  search(query: string, signal: AbortSignal): Promise<SearchResult[]>;
}
