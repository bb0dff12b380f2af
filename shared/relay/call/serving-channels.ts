/** Finds the channels that serve a model in the request's configuration. */
import { ruleOf } from '../../billing/price-rule.ts';
import type { ChannelRow } from '../../config/rows/channel-row.ts';
import type { Snapshot } from '../../config/snapshot.ts';
import { refuse } from '../http/refusal.ts';

/** The enabled channels that serve a model, by priority. Throws a Refusal when there are none. */
export function servingChannels(
  snapshot: Snapshot,
  model: string,
  nowMs: number,
): [ChannelRow, ...ChannelRow[]] {
  const [first, ...rest] = snapshot.channels.filter((channel) => channel.models.includes(model));
  const unpriced = ruleOf(snapshot.charges, model, nowMs) === undefined;
  if (!first || (unpriced && snapshot.settings.unpricedModels === 'refuse'))
    throw refuse(
      'model_not_found',
      `The model "${model}" is not available here. GET /v1/models lists those that are.`,
      {
        param: 'model',
      },
    );
  return [first, ...rest];
}
