/** Stores automatic top-ups in the item `auto-top-up#<account>` of `runtime`. Each write requires the version before its own. */
import { buildAutoTopUpId, convertFen, isOn, type AutoTopUp } from '../../../billing/auto-top-up.ts';
import { formatGrantLedgerId } from '../../../billing/ledger-row.ts';
import type { NanoYuan } from '../../../billing/money.ts';
import type { AutoTopUpStore } from '../../../relay/ports/alerts.ts';
import { StoreBusy } from '../../../relay/ports/store-errors.ts';
import { retry } from '../../../relay/retry.ts';
import { ExpiringCache, systemClock, systemRandom } from '../../system/node-ports.ts';
import { readItems, type RuntimeItem } from '../runtime-items.ts';
import { buildExpressions, Table, type TableClient } from '../table-client.ts';
import { writeUnlessRefused } from '../transactions.ts';
import { encodeNotice } from './alert-store.ts';

const changeMsMax = 8_000;
const limitLifetimeMs = 5 * 60_000;
/** Short, because a customer who stores a card expects it to be charged soon. */
const absenceLifetimeMs = 60_000;
const limitsMax = 10_000;

export function createAutoTopUpStore(client: TableClient, stack: string): AutoTopUpStore {
  const table = new Table(client, stack, 'runtime');
  const find = async (account: string): Promise<AutoTopUp | undefined> => {
    const id = buildAutoTopUpId(account);
    return decode((await readItems(table, [id])).get(id));
  };
  const write: AutoTopUpStore['write'] = async (after, notice) => {
    const item = { id: buildAutoTopUpId(after.account), ...after };
    const condition = buildExpressions(
      { ConditionExpression: after.version === 1 ? 'attribute_not_exists(id)' : 'version = :before' },
      after.version === 1 ? {} : { ':before': after.version - 1 },
    );
    const refused = await writeUnlessRefused(client, [
      { Put: { ...table.putInput(item), ...condition } },
      ...(notice ? [{ Put: table.putInput(encodeNotice(notice)) }] : []),
    ]);
    return refused.length === 0;
  };
  const thresholds = new ExpiringCache<NanoYuan | undefined>({
    clock: systemClock,
    entriesMax: limitsMax,
    lifetimeMs: (below) => (below === undefined ? absenceLifetimeMs : limitLifetimeMs),
  });
  const readLimit = async (account: string): Promise<NanoYuan | undefined> => {
    const auto = await find(account);
    return auto?.terms && isOn(auto) ? convertFen(auto.terms.below) : undefined;
  };
  return {
    find,
    write,
    below: (account) => thresholds.get(account, () => readLimit(account)),
    async isCredited(account, payment) {
      const key = { account, id: formatGrantLedgerId(payment) };
      const item = await new Table(client, stack, 'ledger').get(key, { ProjectionExpression: 'id' });
      return item !== undefined;
    },
    async listActive(accounts) {
      const items = await readItems(table, accounts.map(buildAutoTopUpId));
      return [...items.values()].flatMap((item) => {
        const auto = decode(item);
        return auto && (isOn(auto) || (auto.off && !auto.told)) ? [auto.account] : [];
      });
    },
    change: (account, apply) =>
      retry(
        { clock: systemClock, random: systemRandom },
        async () => {
          const after = apply(await find(account));
          if (!after || (await write(after))) return after;
          throw new StoreBusy('The automatic top-up was changed meanwhile.');
        },
        changeMsMax,
      ),
  };
}

/** The cast is safe: only functions write these items. */
const decode = (item: RuntimeItem | undefined): AutoTopUp | undefined => item as AutoTopUp | undefined;
