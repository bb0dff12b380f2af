/** Parsed settings and their defaults. The schemas of the rows are in setting-row.ts: requests are served without them. */
export interface Settings {
  relayClosed: boolean;
  subscriptionEnabled: boolean;
  unpricedModels: 'free' | 'refuse';
  /** Shown in refusals that only the operator can help with; empty: nothing is shown. */
  contact: string;
  page: boolean;
  corsOrigins: string[];
  limits: { defaultOutputTokens: number; requestSeconds: number };
  /** Absent: models named `web-...` answer without a search. */
  search?: SearchSettings;
}

/** Web search provider settings. */
export interface SearchSettings {
  type: 'searxng' | 'tavily';
  /** The base address, without a slash at its end; `/search` comes behind it. */
  endpoint: string;
  /** A reference. */
  secret?: string | undefined;
  /** 1 to 10. */
  results: number;
  language?: string | undefined;
}

export const defaultSettings: Settings = {
  relayClosed: false,
  subscriptionEnabled: false,
  unpricedModels: 'free',
  contact: '',
  page: true,
  corsOrigins: [],
  limits: { defaultOutputTokens: 4096, requestSeconds: 600 },
};
