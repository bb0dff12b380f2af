/** Which channel served a call, and what it cost the operator: for the close record. Must not read a store. */
import { boughtOf } from '../../billing/price-rule.ts';
import type { TokenCounts } from '../../billing/price.ts';
import type { CloseRecord } from '../../billing/quota-item.ts';
import { upstreamModel } from '../../upstreams/types/channel-quirks.ts';
import type { DispatchReport } from './dispatch-report.ts';

export type ServingFacts = Pick<CloseRecord, 'channel' | 'upstreamModel' | 'firstContentMs' | 'bought'>;

/** `model`: the public name. */
export function servingFacts(
  { channel, firstContentMs }: Pick<DispatchReport, 'channel' | 'firstContentMs'>,
  model: string,
  usage: TokenCounts,
): ServingFacts | undefined {
  if (!channel) return undefined;
  const upstream = upstreamModel(channel, model);
  return {
    channel: channel.id,
    upstreamModel: upstream === model ? undefined : upstream,
    firstContentMs,
    bought: boughtOf(channel.cost, upstream, usage),
  };
}
