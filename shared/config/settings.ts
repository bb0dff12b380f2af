/** What the rows of the table `settings` come to. Apart from their schemas: requests are served without those. */
export interface Settings {
  relayClosed: boolean;
  subscriptionEnabled: boolean;
  unpricedModels: 'free' | 'refuse';
  /** Shown in refusals that only the operator can help with; empty: nothing is shown. */
  contact: string;
  page: boolean;
  corsOrigins: string[];
  limits: { defaultOutputTokens: number; requestSeconds: number };
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
