/** Bodies of the public read endpoints. Source: the relay's client contract, "Model list", "Billing rule", "Plan". */

export interface ModelEntry {
  id: string;
  object: 'model';
  /** Unix seconds: when the configuration that lists the model was loaded. */
  created: number;
  owned_by: 'system';
}

export interface ModelList {
  object: 'list';
  data: ModelEntry[];
  /** Sent, empty, to coding agents that name their version: they require it, with models in their form. */
  models?: [];
}

/** Prices are in yuan: per 1,000 tokens for token-billing, per call (`output`) for times-billing. */
export interface ChargeEntry {
  id: number;
  type: 'non-billing' | 'times-billing' | 'token-billing';
  models: string[];
  input: number;
  output: number;
  anonymous: boolean;
}

export interface PlanEntry {
  level: number;
  price: number;
  items: PlanEntryItem[];
}

/** `value` is a number of calls a month; -1 is unlimited. */
export interface PlanEntryItem {
  id: string;
  name: string;
  icon: string;
  value: number;
  models: string[];
}
