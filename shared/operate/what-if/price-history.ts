/** Whether the prices of models were the same for some days, by the published versions. Reads some snapshots at most. */
import { priceOf } from '../../billing/price-rule.ts';
import type { ChargeRow } from '../../config/rows/charge-row.ts';
import { snapshotFormat } from '../../config/snapshot.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import { isSamePrice } from './changed-price.ts';

const versionsMax = 10;

/** The rules that were in use one after the other. Undefined: nobody knows all of them. */
export type ChargesInUse = readonly (readonly ChargeRow[])[] | undefined;

/** Of the version in force at `fromMs`, and of those after it. */
export async function chargesSince(
  { config }: Pick<OperatorPorts, 'config'>,
  fromMs: number,
): Promise<ChargesInUse> {
  const kept = await config.versions({ sinceMs: fromMs });
  const first = kept.findIndex(({ publishedAt }) => publishedAt * 1000 <= fromMs);
  const oldest = kept.at(-1);
  // Before the first version of all there were no calls.
  const used = first >= 0 ? kept.slice(0, first + 1) : oldest?.version === 1 ? kept : undefined;
  if (!used || used.length > versionsMax || used.some(({ format }) => format !== snapshotFormat))
    return undefined;
  return Promise.all(used.map(async (version) => (await config.snapshot(version)).charges));
}

interface Asked {
  charges: readonly ChargeRow[];
  atMs: number;
  model: string;
  fromMs: number;
  nowMs: number;
}

/** Whether a model cost at any time since `fromMs` what these rules say of `atMs`. */
export function isPriceKnown(inUse: ChargesInUse, { charges, atMs, model, fromMs, nowMs }: Asked): boolean {
  const compared = priceOf(charges, model, atMs);
  return (
    inUse?.every((rules) =>
      [fromMs, ...beginnings(rules, fromMs, nowMs), nowMs].every((each) =>
        isSamePrice(priceOf(rules, model, each), compared),
      ),
    ) === true
  );
}

const beginnings = (rules: readonly ChargeRow[], fromMs: number, toMs: number): number[] =>
  rules.flatMap(({ from }) => (from !== undefined && from > fromMs && from <= toMs ? [from] : []));
