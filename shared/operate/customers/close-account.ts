/**
 * Closes and reopens customers, and erases the contact data of closed ones. Never changes money rows, because later statements need them.
 * Plans are safe to repeat after an interruption; `carryOutWrites` carries them out.
 */
import { formatYuan, type NanoYuan } from '../../billing/money.ts';
import { createQuotaItem, sumReserved } from '../../billing/quota-item.ts';
import { AccountRow, customerProfileOf, isAccountOff } from '../../config/rows/account-row.ts';
import { KeyRow } from '../../config/rows/key-row.ts';
import { textOf } from '../../config/rows/read-row.ts';
import { isoTime } from '../../wire/iso-time.ts';
import { listKeys } from '../keys/list-keys.ts';
import { readAllRows } from '../ledger/ledger.ts';
import type { OperatorPorts, RawRow, RowWrite } from '../operator-ports.ts';
import { formatCount, formatMoney, Failure, quoteShellWord, usageFailure, type Plan } from '../plan.ts';
import { listTexts } from '../../wire/json.ts';

/** `reserved`: the amount that calls in flight still hold. `next`: the steps to settle the balance, in order. */
export type CloseAccountPlan = Awaited<ReturnType<typeof planCloseAccount>>;

/** Disables the account and all its keys. */
export async function planCloseAccount(ports: OperatorPorts, account: string) {
  const { ledger, clock } = ports;
  const [{ row, keys: all }, quota] = await Promise.all([
    readCustomer(ports, account),
    ledger.quota(account),
  ]);
  if (quota && 'problem' in quota) throw new Failure(quota.problem);
  const item = quota?.row ?? createQuotaItem(account);
  const { available } = item;
  const reserved = sumReserved(item);
  const keys = all.filter((each) => each['enabled'] !== false);
  const isClosed = row['enabled'] === false && keys.length === 0;
  const now = isoTime(clock.now());
  // Reuse the mark of an interrupted run: it identifies the keys that a reopening enables.
  const closed = (row['enabled'] === false && textOf(row, '_closed')) || now;
  const attributes = { enabled: false, _closed: closed };
  const next = describeNextSteps({ account, available, reserved, today: now.slice(0, 10), isClosed });
  const conflict = new Failure(`someone deleted the row of ${account} in the meantime`);
  const changes: RowWrite[] = [
    editRow({ account }, attributes, { conflict }),
    ...keys.map(({ hash }) => editRow({ hash }, attributes)),
  ];
  const effect = [
    isClosed
      ? `${account} is already closed`
      : `Disable ${account} and ${keys.length === 1 ? 'its key' : `its ${keys.length} keys`} within 30 s; no data is deleted`,
    `Remaining balance: ${formatMoney(available)}${reserved > 0n ? `, plus ${formatMoney(reserved)} reserved by calls in flight` : ''}`,
  ];
  return {
    changes: isClosed ? [] : changes,
    effect: isClosed ? [...effect, ...next] : effect,
    questions: isClosed ? [] : [`Close ${account}?`],
    account,
    available,
    reserved,
    keys: keys.length,
    next,
  };
}

async function readCustomer(ports: OperatorPorts, account: string) {
  const [row, keys] = await Promise.all([
    ports.tables.get('accounts', account),
    listKeys(ports, { account }),
  ]);
  if (!row) throw usageFailure(`no customer ${account}: see \`customer list\``);
  return { row, keys: keys.map((key) => key.row) };
}

type RowEdit = Partial<Pick<Extract<RowWrite, { kind: 'update' }>, 'unchanged' | 'conflict'>>;

const editRow = (
  key: { account: string } | { hash: unknown },
  attributes: RawRow,
  { unchanged = {}, ...edit }: RowEdit = {},
): RowWrite => {
  const table = 'account' in key ? 'accounts' : 'keys';
  return { kind: 'update', table, key, attributes, unchanged, ...edit };
};

interface Closing {
  account: string;
  available: NanoYuan;
  reserved: NanoYuan;
  today: string;
  isClosed: boolean;
}

/**
 * The final balance is known only when environments stop accepting calls, within 30 s, and calls in flight have returned what they did not
 * use. The grant id contains the day, because an account may be reopened and closed again.
 */
function describeNextSteps({ account, available, reserved, today, isClosed }: Closing): string[] {
  const isSure = isClosed && reserved === 0n;
  const wait = `wait a minute${reserved > 0n ? ', until no call is in flight' : ''}, then read the final balance: \`customer close ${quoteShellWord(account)}\``;
  if (isSure ? available <= 0n : available + reserved <= 0n) return [];
  if (reserved > 0n) return [wait];
  return [
    ...(isSure ? [] : [wait]),
    `pay ${formatMoney(available)} back to the customer`,
    `grant new ${quoteShellWord(account)} -${formatYuan(available)} --id closed-${today} --reason "paid back"`,
  ];
}

/**
 * Enables the customer and the keys that the closing disabled. Writes the account last: until then, a repeated run still finds these
 * keys.
 */
export async function planReopenAccount(ports: OperatorPorts, account: string): Promise<Plan<RowWrite>> {
  const { row, keys: all } = await readCustomer(ports, account);
  if (!isAccountOff(row))
    return { changes: [], effect: [`${account} is not closed or disabled`], questions: [] };
  const closed = row['_closed'];
  const keys = all.filter(
    (key) => closed !== undefined && key['_closed'] === closed && key['_leaked'] === undefined,
  );
  const enable = { enabled: true, _closed: undefined };
  const conflict = new Failure(`someone else changed ${account} in the meantime: review it and try again`);
  return {
    changes: [
      ...keys.map(({ hash }) =>
        editRow({ hash }, enable, { unchanged: { enabled: false, _closed: closed, _leaked: undefined } }),
      ),
      editRow({ account }, enable, { unchanged: { enabled: row['enabled'], _closed: closed }, conflict }),
    ],
    effect: [
      `Accept calls of ${account} again within 30 s`,
      `Enable ${formatCount(keys.length, 'key')} that the closing disabled`,
      ...(row['_erased'] === undefined ? [] : ['Its contact data was erased: set it again for alerts']),
    ],
    questions: [`Reopen ${account}?`],
  };
}

/** Attributes of a customer that hold contact data. */
export const contactAttributes: ReadonlySet<string> = new Set(['contact', 'note', 'name']);
/** Notes that the tools need. Other notes may contain anything: ids of sheets, and problems that quote invalid values. */
const keptNotes: ReadonlySet<string> = new Set(
  '_by _at _closed _erased _created _replaces _leaked'.split(' '),
);

/**
 * An unknown attribute may be an address under a wrong name, so it is erased too. Sorted, because the table returns attributes in any
 * order, and a form is carried out only if its plan is still the one that was shown.
 */
function eraseTexts(row: RawRow, { shape }: { shape: object }): RawRow {
  const isErased = (name: string): boolean =>
    name.startsWith('_') ? !keptNotes.has(name) : contactAttributes.has(name) || !Object.hasOwn(shape, name);
  const names = Object.keys(row).filter(isErased).toSorted();
  return Object.fromEntries(names.map((name) => [name, undefined]));
}

/** `remains`: the data that stays, and where, in sentences. */
export type EraseAccountPlan = Awaited<ReturnType<typeof planEraseAccount>>;

/** Refuses a customer that is not closed: alerts still need the address. */
export async function planEraseAccount(ports: OperatorPorts, account: string) {
  const { payments, pages, clock } = ports;
  const [{ row, keys: all }, { rows: paid, problems }, { grants, isAll }] = await Promise.all([
    readCustomer(ports, account),
    readAllRows(payments.all()),
    pages.grants(account, 1),
  ]);
  const refusal =
    row['enabled'] === false && all.every((key) => key['enabled'] === false)
      ? undefined
      : `${account} is not closed: close it first, because its alerts need the address`;
  const erased = eraseTexts(row, AccountRow);
  const names = Object.keys(erased);
  const keys = all
    .map((key) => editRow({ hash: key['hash'] }, eraseTexts(key, KeyRow)))
    .filter((edit) => 'attributes' in edit && Object.keys(edit.attributes).length > 0);
  const conflict = new Failure(`someone opened ${account} again in the meantime; nothing was erased`);
  const attributes = { ...erased, _erased: isoTime(clock.now()) };
  const changes = [
    ...(names.length === 0
      ? []
      : [editRow({ account }, attributes, { unchanged: { enabled: false }, conflict })]),
    ...keys,
  ];
  const ids = paid.filter((payment) => payment.account === account);
  const remains = listTexts(
    `The name ${account}, its balance, ledger${grants.length > 0 ? ' and grants' : ''}, without contact data${isAll && grants.length === 0 ? '' : '; reasons of grants stay as they were written'}`,
    ids.length > 0 &&
      `At Stripe: what the customer entered there, under ${formatCount(ids.length, 'payment')} (${ids[0]?.id}) and the customer id of a saved card; delete the customer in Stripe's dashboard`,
    customerProfileOf(row as RawRow & AccountRow) !== undefined &&
      'At the vendor: the profile that the row names; its name can only be changed there',
    'Stored responses until they expire, and the log of calls until its retention ends: neither contains contact data',
    'In the console: forms of the last half hour and their results. They expire within days',
    'Backups: earlier copies of the tables, for up to 35 days; exported files',
  );
  const parts = listTexts(
    ...names.filter((name) => !name.startsWith('_')),
    keys.length > 0 && `the names and notes of ${formatCount(keys.length, 'key')}`,
  );
  return {
    changes,
    effect:
      changes.length === 0
        ? [`The contact data of ${account} is already erased`]
        : [`Erase ${parts.join(', ') || 'internal notes'} of ${account}; this cannot be undone`],
    questions: changes.length === 0 ? [] : [`Erase the contact data of ${account}?`],
    warnings: [...problems, ...remains.map((each) => `Kept: ${each}`)],
    ...(refusal !== undefined && { refusal }),
    account,
    remains,
  };
}
