/** Reads the channels for the watch of upstream balances, and stores the balance that each upstream reports. */
import type { WatchedChannels } from '../../../relay/ports/alerts.ts';
import { readChannel } from '../../../config/rows/channel-row.ts';
import type { ReferenceRules } from '../../../config/rows/secret-reference.ts';
import { changeIfUnchanged, Table, valuesOf, type TableClient } from '../table-client.ts';

export function createWatchedChannels(
  client: TableClient,
  stack: string,
  rules: ReferenceRules,
): WatchedChannels {
  const table = new Table(client, stack, 'channels');
  return {
    async rows() {
      const items = await Array.fromAsync(table.readPages('Scan'));
      const readings = items.flat().map((item) => readChannel(valuesOf(item), rules));
      return readings.flatMap((reading) => ('row' in reading ? [reading.row] : []));
    },
    async mark(id, balance) {
      const existing = { key: 'id', names: [], stored: {} };
      await table.update({ id }, changeIfUnchanged(existing, { _balance: balance }));
    },
  };
}
