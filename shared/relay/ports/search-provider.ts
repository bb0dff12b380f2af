/** Web search through a provider. */

export interface SearchResult {
  title: string;
  url: string;
  text: string;
  /** In the provider's own format. */
  date?: string | undefined;
}

export interface SearchProvider {
  /** May return an empty list. Rejects when the provider does not answer or its reply has no results. */
  search(query: string, signal: AbortSignal): Promise<SearchResult[]>;
}
