/**
 * Closes an account: all its keys are refused, and says what is left of the balance. Rows and ledger stay, so that statements
 * can be made later. `carryOutWrites` carries it out.
 */
import { formatYuan, type NanoYuan } from '../../billing/amount.ts';
import { emptyQuota, reservedOf } from '../../billing/quota-item.ts';
import { textOf } from '../../config/rows/read-row.ts';
import { isoTime } from '../../wire/iso-time.ts';
import { listKeys } from '../keys/list-keys.ts';
import { Failure, usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { Plan } from '../plan.ts';
import type { RowWrite } from '../row-tables.ts';
import { shellWord } from '../shell-word.ts';

export interface CloseAccountPlan extends Plan<RowWrite> {
  account: string;
  available: NanoYuan;
  /** What calls under way still hold. */
  reserved: NanoYuan;
  /** Keys that are refused from then on. */
  keys: number;
  /** What to do about the balance, in order. */
  next: string[];
}

export async function planCloseAccount(ports: OperatorPorts, account: string): Promise<CloseAccountPlan> {
  const { tables, ledger, clock } = ports;
  const [row, quota, all] = await Promise.all([
    tables.get('accounts', account),
    ledger.quota(account),
    listKeys(ports, { account }),
  ]);
  if (!row) throw usageFailure(`there is no account ${account}: see \`customer list\``);
  if (quota && 'problem' in quota) throw new Failure(quota.problem);
  const item = quota?.row ?? emptyQuota(account);
  const [available, reserved] = [item.available, reservedOf(item)];
  const keys = all.filter((each) => each.row['enabled'] !== false).map((each) => textOf(each.row, 'hash'));
  const isClosed = row['enabled'] === false && keys.length === 0;
  const today = isoTime(clock.now()).slice(0, 10);
  const next = nextSteps({ account, available, reserved }, { today, isClosed });
  const off = { enabled: false };
  const gone = new Failure(`the row of ${account} is gone: somebody deleted it meanwhile`);
  return {
    changes: isClosed
      ? []
      : [
          {
            kind: 'update',
            table: 'accounts',
            key: { account },
            attributes: { ...off, _closed: isoTime(clock.now()) },
            unchanged: {},
            conflict: gone,
          },
          ...keys.map((hash): RowWrite => ({
            kind: 'update',
            table: 'keys',
            key: { hash },
            attributes: off,
            unchanged: {},
          })),
        ],
    effect: isClosed
      ? [`account ${account} is closed already`, ...next]
      : [
          `account ${account} and its keys (${keys.length}) are refused within 30 seconds; no row is deleted`,
          `${formatYuan(available)} yuan are left${reserved > 0n ? `, and calls under way hold ${formatYuan(reserved)} more` : ''}`,
        ],
    questions: isClosed ? [] : [`Close account ${account}?`],
    account,
    available,
    reserved,
    keys: keys.length,
    next,
  };
}

/**
 * Environments let calls in for half a minute more, and calls under way return what they do not use: only then is it sure
 * what is left. The id is of a day, since an account may be opened and closed again.
 */
function nextSteps(
  { account, available, reserved }: Pick<CloseAccountPlan, 'account' | 'available' | 'reserved'>,
  { today, isClosed }: { today: string; isClosed: boolean },
): string[] {
  const isSure = isClosed && reserved === 0n;
  const wait = `wait a minute${reserved > 0n ? ', until no call is under way,' : ''} and repeat \`customer close ${shellWord(account)}\`: it says what is left then`;
  if (isSure ? available <= 0n : available + reserved <= 0n) return [];
  if (reserved > 0n) return [wait];
  return [
    ...(isSure ? [] : [wait]),
    `pay the customer ${formatYuan(available)} yuan, by the way they paid`,
    `account grant ${shellWord(account)} -${formatYuan(available)} --id closed-${today} --reason "paid back"`,
  ];
}
