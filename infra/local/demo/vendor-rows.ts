import type { SeedRow } from './seed-rows.ts';

/** A model of a vendor double, under the name that demo clients use. */
interface VendorModel {
  /** The double's name. */
  vendor: string;
  model: string;
  /** The vendor's name of the model. */
  upstream: string;
  row: Record<string, unknown>;
}

const vendorModels: VendorModel[] = [
  {
    vendor: 'openai',
    model: 'demo-gpt',
    upstream: 'gpt-5.6',
    row: { name: 'OpenAI, as it behaves', type: 'openai', dialect: 'responses' },
  },
  {
    vendor: 'gemini',
    model: 'demo-gemini',
    upstream: 'gemini-3-pro-preview',
    row: { name: 'Gemini, as it behaves', type: 'gemini' },
  },
  {
    vendor: 'deepseek',
    model: 'demo-deepseek',
    upstream: 'deepseek-v4-pro',
    row: { name: 'DeepSeek, as it behaves', type: 'openai' },
  },
  {
    vendor: 'anthropic',
    model: 'demo-claude',
    upstream: 'claude-opus-5-5',
    row: { name: 'Anthropic, as it behaves', type: 'anthropic' },
  },
  {
    vendor: 'bedrock',
    model: 'demo-bedrock',
    upstream: 'us.anthropic.claude-opus-5-5-v1:0',
    row: { name: 'Bedrock, as it behaves', type: 'bedrock', region: 'us-east-1' },
  },
  {
    vendor: 'picky',
    model: 'demo-picky',
    upstream: 'picky',
    row: {
      name: 'A picky self-hosted server',
      type: 'openai',
      params: { system: 'first', null_content: 'empty', call_ids: 'alnum9' },
    },
  },
];

/** A channel to each vendor double, and a price. `endpointOf`: the address that a row names for a double. */
export const vendorRows = (endpointOf: (vendor: string) => string): SeedRow[] => [
  {
    table: 'charges',
    row: {
      id: 2,
      type: 'token-billing',
      models: vendorModels.map(({ model }) => model),
      input: 0.002,
      output: 0.008,
    },
  },
  ...vendorModels.map(({ vendor, model, upstream, row }) => ({
    table: 'channels' as const,
    row: {
      id: model,
      endpoint: endpointOf(vendor),
      models: [model],
      mapper: { [model]: upstream },
      priority: 0,
      state: true,
      ...row,
    },
  })),
];
