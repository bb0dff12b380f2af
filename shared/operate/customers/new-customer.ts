/**
 * Creates a customer: the account, a first grant and a key, in that order; and the text to send. A run that broke off before its
 * key may be repeated: the grant has a fixed id, so it is applied once. An account with a key is a customer, so it is refused.
 */
import { parseYuan } from '../../billing/money.ts';
import { isAccountOff } from '../../config/rows/account-row.ts';
import { textOf } from '../../config/rows/read-row.ts';
import { compileSettings } from '../config/row-changes.ts';
import { carryOutKey, planCreateKey, type MadeKey } from '../keys/edit-key.ts';
import { listKeys } from '../keys/list-keys.ts';
import type { OperatorPorts, RawRow, RowWrite } from '../operator-ports.ts';
import { formatMoney, formatWrittenMoney, Failure, usageFailure } from '../plan.ts';
import { planEditAccount } from './edit-account.ts';
import { awaitApplied, planGrantAmount, type GrantMade } from './grants.ts';
import { listTexts } from '../../wire/json.ts';

export interface NewCustomerInput {
  account: string;
  /** Yuan as typed. Without it the customer starts with a balance of 0. */
  grant?: string | undefined;
  attributes?: RawRow;
  reason?: string | undefined;
  /** The only models that the key may call. */
  models?: string[] | undefined;
}

export type NewCustomerPlan = Awaited<ReturnType<typeof planNewCustomer>>;

/** The id of the grant at creation; no other grant can have it. */
const firstGrantId = 'first';
export async function planNewCustomer(ports: OperatorPorts, input: NewCustomerInput) {
  const { account, attributes = {}, models, reason } = input;
  if (isAccountOff(attributes))
    throw usageFailure('enabled: a new customer is always enabled; disable it later with `customer off`');
  const edit = await planEditAccount(ports, { account, attributes, isNew: true });
  const grant =
    input.grant === undefined
      ? undefined
      : await planGrantAmount(ports, { account, amount: input.grant, reason, id: firstGrantId, new: true });
  if (grant && grant.amount < 0n) throw usageFailure('--grant: use an amount above 0');
  const earlier = await findEarlierRun(ports, account);
  const granted = earlier.grants.find(({ grantId }) => grantId === firstGrantId);
  if (granted && parseYuan(granted.amount) !== grant?.amount)
    throw usageFailure(
      `an earlier run already credited ${formatWrittenMoney(granted.amount)} to ${account}: re-run with --grant ${granted.amount}`,
    );
  const key = await planCreateKey(ports, { account, attributes: { models } });
  const { settings } = await compileSettings(ports);
  const yuan = grant && formatMoney(grant.amount);
  const changes: RowWrite[] = [
    ...edit.changes,
    ...(grant && !granted ? grant.changes.filter(({ table }) => table === 'grants') : []),
    ...key.changes.filter(({ table }) => table === 'keys'),
  ];
  return {
    changes,
    effect: listTexts(
      earlier.row && `Complete customer ${account}, which exists without a key`,
      ...(edit.changes.length > 0 ? edit.effect : []),
      grant && (granted ? `${yuan} was already credited by an earlier run` : grant.effect.at(-1)),
      `Create a key (${key.rights})`,
    ),
    warnings: [...edit.warnings, ...(key.warnings ?? [])],
    questions: [
      ...edit.questions,
      yuan ? `Create customer ${account} with ${yuan}?` : `Create customer ${account}?`,
    ],
    account,
    rights: key.rights,
    grant,
    baseUrl: await ports.baseUrl(),
    /** Those that the settings allow, for what customers are sent: `/` with models and prices, and `/account`. */
    pages: { models: settings.page, account: settings.accountPage },
    contact: textOf(attributes['contact'], 'email') || undefined,
  };
}

/**
 * Reads what an interrupted run left behind. Throws a Failure for an account that has called or has a key: that is a customer, who may have
 * been sent the key, so nothing here touches it. `row`: of the account; undefined: there was no earlier run.
 */
async function findEarlierRun(ports: OperatorPorts, account: string) {
  const { tables, ledger } = ports;
  const [row, quota, grants, keys] = await Promise.all([
    tables.get('accounts', account),
    ledger.quota(account),
    Array.fromAsync(ledger.grants(account)),
    listKeys(ports, { account }),
  ]);
  if (isAccountOff(row))
    throw usageFailure(
      `customer ${account} exists but is disabled: enable it with \`customer on ${account}\``,
    );
  const item = quota && 'row' in quota ? quota.row : undefined;
  const hasCalled = item !== undefined && (item.settled > 0 || item.open.size > 0 || item.spent > 0n);
  const isUnreadable = quota !== undefined && item === undefined;
  if (hasCalled || isUnreadable || keys.length > 0)
    throw usageFailure(
      `customer ${account} already exists: use \`key new ${account}\` for another key, \`key rotate\` to replace a lost key, or \`grant new ${account}\` to top up`,
    );
  return { row, grants: grants.flat() };
}

export interface CustomerMade extends MadeKey {
  /** `problem` says why the relay rejected the grant. */
  grant: (GrantMade & { problem?: string }) | undefined;
}

export async function carryOutNewCustomer(
  ports: OperatorPorts,
  plan: NewCustomerPlan,
  waitMs: number,
): Promise<CustomerMade> {
  const { made, ...key } = await carryOutKey(ports, plan);
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

/** Browsers never send the part after `#` to a server, so the key stays on the customer's machine. */
export const buildAccountLink = (baseUrl: string | undefined, secretKey: string): string | undefined =>
  baseUrl === undefined ? undefined : `${pageOf(baseUrl)}/account#${secretKey}`;

const pageOf = (baseUrl: string): string => baseUrl.replace(/\/v1\/?$/, '');

/**
 * The message for a new customer, with the key, ready to send, and warnings about it.
 * @param isLinked puts a link into it that opens the account page with the key
 */
export function writeWelcome(
  { account, grant, baseUrl, pages }: Pick<NewCustomerPlan, 'account' | 'grant' | 'baseUrl' | 'pages'>,
  { secretKey, grant: made }: Pick<CustomerMade, 'secretKey' | 'grant'>,
  isLinked: boolean,
): { message: string[]; warnings: string[] } {
  const address = baseUrl ?? '(the address of this relay)/v1';
  const link = isLinked ? buildAccountLink(baseUrl, secretKey) : undefined;
  const warnings = [
    baseUrl === undefined && 'The address of the relay is unknown: add it to the message.',
    isLinked && !pages.account && 'The message has no link: the setting account_page is false.',
    made?.problem ??
      (made?.isApplied === false &&
        'The grant is pending and will be applied within minutes: see `customer show`.'),
  ];
  return {
    message: listTexts(
      `Your account ${account} is ready${grant ? ` with a balance of ${formatMoney(grant.amount)}` : ''}.`,
      '',
      `Base URL: ${address}`,
      `API key:  ${secretKey}`,
      '',
      `For any OpenAI client, set OPENAI_BASE_URL=${address} and OPENAI_API_KEY=<your key>`,
      baseUrl !== undefined && pages.models && `Models and prices: ${pageOf(baseUrl)}/`,
      pages.account &&
        `Balance, usage and limits: ${link ?? `${pageOf(address)}/account (asks for your key)`}`,
      'Anyone who has this key can spend your balance: keep it out of code and chats. If it leaks, tell us at once.',
    ),
    warnings: listTexts(...warnings),
  };
}
