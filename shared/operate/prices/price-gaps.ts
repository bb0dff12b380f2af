/** View: served models without a price, and priced models that nobody serves. */
import { pricedModels } from '../../billing/price-rule.ts';
import { readCharge } from '../../config/compile/read-charge.ts';
import { readSetting } from '../../config/compile/read-setting.ts';
import { modelsNamedIn } from '../../config/compile/unpriced-models.ts';
import { usableChannels } from '../channels/find-channel.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import { readCharges } from './list-charges.ts';

export interface ChargeGap {
  /** Served without a price, and therefore free. */
  free: string[];
  /** Served without a price, and therefore refused. */
  refused: string[];
  /** Priced, and served by no channel that is on. */
  unused: string[];
}

export async function serviceGaps({
  clock,
  tables,
  target,
}: Pick<OperatorPorts, 'clock' | 'tables' | 'target'>): Promise<ChargeGap> {
  const [channels, charges, settings] = await Promise.all([
    tables.scan('channels'),
    tables.scan('charges'),
    tables.scan('settings'),
  ]);
  const on = usableChannels(channels, target).filter(({ state }) => state);
  const served = new Set(on.flatMap(({ models }) => models));
  const { charges: rules } = readCharges(charges);
  const priced = pricedModels(rules, clock.now());
  const unpriced = [...served].filter((model) => !priced.has(model)).toSorted();
  const row = settings.find(({ name }) => name === 'unpriced_models');
  const reading = row && readSetting(row);
  // One that cannot be read refuses, too.
  const areRefused =
    reading !== undefined && (!('row' in reading) || reading.row.unpricedModels === 'refuse');
  const unread = charges.filter((raw) => 'problem' in readCharge(raw));
  const refused = areRefused ? unpriced : modelsNamedIn(unread, unpriced);
  return {
    free: unpriced.filter((model) => !refused.includes(model)),
    refused,
    unused: [...priced].filter((model) => !served.has(model)).toSorted(),
  };
}
