export interface SearchResult {
  title: string;
  url: string;
  text: string;
  /** As the provider writes it. */
  date?: string | undefined;
}

export interface SearchProvider {
  /** Rejects when there is no answer, or one that is not understood. May be empty. */
  search(query: string, signal: AbortSignal): Promise<SearchResult[]>;
}
