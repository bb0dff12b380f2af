import type { Settings } from '../../shared/config/settings.ts';
import { BillingRig, type BillingOptions } from './billing-rig.ts';

/** `large` costs ten times as much as `small`: 0.01 yuan per input token, 0.02 per output token. */
export const charges = [
  { id: 1, type: 'token-billing', models: ['small'], input: 1, output: 2 },
  { id: 2, type: 'token-billing', models: ['large'], input: 10, output: 20 },
  { id: 3, type: 'times-billing', models: ['by-call'], output: 0.5 },
  { id: 4, type: 'non-billing', models: ['gift'] },
];

export const channelOf = (model: string, more: Record<string, unknown> = {}) => ({
  id: `${model}1`,
  models: [model],
  endpoint: `https://${model}.test/v1`,
  ...more,
});

/** Three channels of a first model, and one of a second. */
export const manySmall = [
  ...['a', 'b', 'c'].map((id, i) => channelOf('small', { id: `small-${id}`, priority: -i })),
  channelOf('large'),
];

export const best = (...models: string[]): NonNullable<Settings['aliases']> => [
  { name: 'best', models, onContextLength: false },
];

export const bestIfTooLong = (...models: string[]): NonNullable<Settings['aliases']> => [
  { name: 'best', models, onContextLength: true },
];

export interface AliasOptions extends BillingOptions {
  aliases?: Settings['aliases'];
}

/** The alias `best` of `small`, else `large`. */
export const aliasRig = ({ aliases = best('small', 'large'), settings, ...options }: AliasOptions = {}) =>
  new BillingRig({
    channels: ['small', 'large', 'by-call', 'gift'].map((model) => channelOf(model)),
    charges,
    ...options,
    settings: { ...settings, aliases },
  });

export const yuan = 1_000_000_000n;
/** The costs of `hello`: 7 tokens in, 2 out. */
export const helloCosts = { small: 11_000_000n, large: 110_000_000n };

export const hosts = ({ sent }: BillingRig): string[] => sent.map(({ url }) => new URL(url).hostname);
