/**
 * Makes a customer: the account, a first grant and a key, in that order. A run that broke off may be repeated: the grant has a
 * fixed id, so it is applied once, and a key that an earlier run made and nobody has used is refused, since it cannot be
 * shown again.
 */
import { formatYuan, parseYuan } from '../../billing/amount.ts';
import { readAlertedAccount } from '../../config/rows/alerted-account.ts';
import { awaitApplied, planGrantAmount, type GrantMade, type GrantPlan } from '../accounts/grant-amount.ts';
import { makeKey, planCreateKey, type MadeKey, type NewKeyPlan } from '../keys/create-key.ts';
import { Failure, usable, usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { RawRow, RowWrite } from '../row-tables.ts';
import { carryOutWrites } from '../row-writes.ts';
import { customerPages, type CustomerPages } from './customer-pages.ts';
import { earlierRun, keyMark } from './earlier-run.ts';

export interface NewCustomerInput {
  account: string;
  /** Yuan as typed. Undefined: the customer begins without a balance. */
  grant?: string | undefined;
  /** An e-mail address, which alerts are sent to. */
  contact?: string | undefined;
  note?: string | undefined;
  reason?: string | undefined;
  /** The only models that the key may call. */
  models?: string[] | undefined;
}

export interface NewCustomerPlan extends NewKeyPlan {
  /** Undefined: nothing is granted. */
  grant: GrantPlan | undefined;
  baseUrl: string | undefined;
  contact: string | undefined;
  /** Which pages of customers the settings allow. */
  pages: CustomerPages;
}

/** What the customer gets when it is made; nobody else can have a grant of this id. */
export const firstGrantId = 'first';

export async function planNewCustomer(
  ports: OperatorPorts,
  input: NewCustomerInput,
): Promise<NewCustomerPlan> {
  const { account, contact, note, models, reason } = input;
  const attributes: RawRow = {
    ...(contact !== undefined && { contact: { email: contact } }),
    ...(note !== undefined && { note }),
  };
  usable(readAlertedAccount({ account, ...attributes }, ports.target), 'nothing was written: ');
  const grant =
    input.grant === undefined
      ? undefined
      : await planGrantAmount(ports, { account, amount: input.grant, reason, id: firstGrantId, new: true });
  if (grant && grant.amount < 0n) throw usageFailure('--grant: wanted yuan above 0');
  const earlier = await earlierRun(ports, account);
  const granted = earlier.grants.find(({ grantId }) => grantId === firstGrantId);
  if (granted && parseYuan(granted.amount) !== grant?.amount)
    throw usageFailure(
      `an earlier run granted ${granted.amount} yuan to ${account}: repeat it with --grant ${granted.amount}`,
    );
  const key = await planCreateKey(ports, { account, ...(models && { models }) });
  const effect = [
    earlier.row ? `account ${account} is there, without keys that were used` : `account ${account} is new`,
    ...earlier.keys.map(
      ({ hint }) => `the key ${hint} that an earlier run made is refused within 30 seconds`,
    ),
    ...(grant
      ? [
          granted
            ? `its ${formatYuan(grant.amount)} yuan were granted by an earlier run`
            : (grant.effect.at(-1) ?? ''),
        ]
      : []),
    `a key: ${key.rights}`,
  ];
  return {
    changes: [
      accountWrite(account, attributes, earlier.row),
      ...earlier.keys.map(({ hash }): RowWrite => refusal(hash)),
      ...(grant && !granted ? grant.changes.filter(({ table }) => table === 'grants') : []),
      ...key.changes.filter(({ table }) => table === 'keys').map(marked),
    ],
    effect,
    warnings: key.warnings ?? [],
    questions: [
      // The customer may have been sent one of them, and not have called yet.
      ...earlier.keys.map(
        ({ hint, created }) => `Refuse the key ${hint}, made at ${created}, and make another?`,
      ),
      grant ? `Make customer ${account} with ${formatYuan(grant.amount)} yuan?` : `Make customer ${account}?`,
    ],
    account,
    rights: key.rights,
    grant,
    baseUrl: await ports.baseUrl(),
    pages: await customerPages(ports),
    contact,
  };
}

function accountWrite(account: string, attributes: RawRow, there: RawRow | undefined): RowWrite {
  const row = { account, ...attributes };
  const conflict = usageFailure(`somebody else made account ${account} meanwhile: see \`customer show\``);
  if (!there) return { kind: 'create', table: 'accounts', row, conflict };
  return { kind: 'update', table: 'accounts', key: { account }, attributes, unchanged: {}, conflict };
}

const refusal = (hash: string): RowWrite => ({
  kind: 'update',
  table: 'keys',
  key: { hash },
  attributes: { enabled: false },
  unchanged: {},
});

const marked = (write: RowWrite): RowWrite =>
  write.kind === 'create' ? { ...write, row: { ...write.row, ...keyMark } } : write;

export interface CustomerMade extends MadeKey {
  /** Undefined: nothing was granted. `problem`: why the relay does not take it. */
  grant: (GrantMade & { problem?: string }) | undefined;
}

export async function carryOutNewCustomer(
  ports: OperatorPorts,
  plan: NewCustomerPlan,
  waitMs: number,
): Promise<CustomerMade> {
  const { changes, ...key } = makeKey(ports, plan);
  const made = await carryOutWrites(ports, { ...plan, changes });
  if (!plan.grant) return { ...key, grant: undefined };
  try {
    return { ...key, grant: { made, ...(await awaitApplied(ports, plan.grant, waitMs)) } };
  } catch (error) {
    // The key is made and must be shown, whatever is wrong with the grant.
    if (error instanceof Failure)
      return { ...key, grant: { made, isApplied: false, problem: error.message } };
    throw error;
  }
}
