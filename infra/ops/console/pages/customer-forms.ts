/** Creates, tops up, edits and closes customers and creates their keys, by the same plans as the commands. */
import {
  planCloseAccount,
  planEraseAccount,
  planReopenAccount,
} from '../../../../shared/operate/customers/close-account.ts';
import { planEditAccount } from '../../../../shared/operate/customers/edit-account.ts';
import { fingerprintRow, setAttributes } from '../../../../shared/operate/rows.ts';
import {
  carryOutNewCustomer,
  planNewCustomer,
  writeWelcome,
} from '../../../../shared/operate/customers/new-customer.ts';
import { carryOutKey, planCreateKey } from '../../../../shared/operate/keys/edit-key.ts';
import { formatYuan, parseYuan, type NanoYuan } from '../../../../shared/billing/money.ts';
import { formatMoney, usageFailure } from '../../../../shared/operate/plan.ts';
import { describeClosure, describeErasure, describeGrantOutcome } from '../../outcomes.ts';
import { accountFields, newAccountFields } from '../../fields/account-fields.ts';
import { keyFields } from '../../fields/key-fields.ts';
import {
  type Field,
  makeNames,
  fillFields,
  createSeenField,
  parseText,
  parseTypedList,
  parseTypedRow,
} from '../../fields/row-field.ts';
import { fillForm, readForm } from '../../fields/form-fields.ts';
import type { SentForm } from '../layout/form.ts';
import { renderLead } from '../layout/frame.ts';
import {
  createFormId,
  grantWaitMs,
  customerPathOf,
  buildFormPage,
  buildPath,
  createProposal,
  proposeWrites,
  showWrites,
  type Proposal,
  type Routes,
  type Visit,
} from '../visit/visit.ts';
import {
  carryOutGrant,
  findGrant,
  planGrantAmount,
  type GrantPlan,
} from '../../../../shared/operate/customers/grants.ts';

export function addCustomerForms(routes: Routes): void {
  routes.form('/customers-new', { page: newPage, propose: proposeNew });
  routes.form('/customers/:account/grant', { page: grantPage, propose: proposeGrant });
  routes.form('/customers/:account/payback', { page: paybackPage, propose: proposePayback });
  routes.form('/customers/:account/keys/new', { page: keyPage, propose: proposeKey });
  routes.form('/customers/:account/edit', { page: editPage, propose: proposeEdit });
  routes.form('/customers/:account/close', { page: closePage, propose: proposeClose });
  routes.form('/customers/:account/reopen', { page: reopenPage, propose: proposeReopen });
  routes.form('/customers/:account/erase', { page: erasePage, propose: proposeErase });
}

const linkCustomer = ({ parameter }: Visit) => {
  const account = parameter('account');
  return { above: [[customerPathOf(account), account]] as const, cancel: customerPathOf(account) };
};

const newPage = buildFormPage((_, tried) => ({
  title: 'New customer',
  intro: renderLead(
    'Creates the account, its first top-up and a key in one step, with a message for the customer.',
  ),
  fields: [
    {
      name: 'account',
      alsoNamed: 'customer',
      label: 'Name',
      required: true,
      placeholder: 'acme',
      help: 'Identifies the customer in all tables. It can’t be changed later.',
    },
    {
      name: 'amount',
      alsoNamed: 'grant',
      label: 'Amount (¥)',
      input: 'decimal',
      placeholder: '50',
      help: 'The starting balance. Leave empty for none.',
    },
    ...fillForm(newAccountFields, {}, tried?.fields),
    makeNames(
      'models',
      'Allowed models',
      'The only models the key may call, separated by commas or lines. Leave empty for all models.',
    ),
    {
      name: 'link',
      label: 'Include a link with the key in the message',
      kind: 'check',
      help: 'The link opens the account page with the key. Anyone who sees the link has the key.',
    },
  ],
  cancel: 'customers',
}));

async function proposeNew({ ports, field, fields }: Visit): Promise<Proposal> {
  const account = field('account');
  if (account === '') throw usageFailure('account: enter a name');
  const models = parseTypedList(field('models'));
  const plan = await planNewCustomer(ports, {
    account,
    grant: parseText(field('amount')),
    // Fields left empty keep what an earlier run wrote.
    attributes: setAttributes({}, readForm(newAccountFields, fields)),
    ...(models.length > 0 && { models }),
  });
  const isLinked = field('link') === 'yes';
  const proposal = createProposal(
    plan,
    { title: `New customer ${account}`, back: 'customers', verb: 'Create customer' },
    async () => {
      const made = await carryOutNewCustomer(ports, plan, grantWaitMs);
      const { message, warnings } = writeWelcome(plan, made, isLinked);
      const granted = plan.grant && made.grant && describeGrantOutcome(plan.grant, made.grant).lines;
      return {
        lines: [
          `Created customer ${account} with the key ${made.hint} (works within 5 s).`,
          ...(granted ?? []),
        ],
        warnings,
        secret: { name: 'API key', value: made.secretKey },
        message,
        next: [[customerPathOf(account), `Open ${account}`]],
      };
    },
  );
  return { ...proposal, ...showWrites(ports, plan.changes) };
}

const keyPage = buildFormPage((visit) => ({
  ...linkCustomer(visit),
  title: 'New key',
  intro: renderLead('The key is shown once, right after you create it.'),
  fields: fillFields(keyFields, {}),
}));

async function proposeKey({ ports, parameter, field }: Visit): Promise<Proposal> {
  const account = parameter('account');
  const plan = await planCreateKey(ports, { account, attributes: parseTypedRow(keyFields, field) });
  return createProposal(
    plan,
    { title: `New key for ${account}`, back: customerPathOf(account), verb: 'Create key' },
    async () => {
      const made = await carryOutKey(ports, plan);
      return {
        lines: [`Created the key ${made.hint} for ${account} (works within 5 s).`],
        secret: { name: 'API key', value: made.secretKey },
      };
    },
  );
}

const editPage = buildFormPage(async (visit, tried) => {
  const account = visit.parameter('account');
  const row = await visit.ports.tables.get('accounts', account);
  if (!row) throw usageFailure(`customer ${account} does not exist`);
  const fields = [...fillForm(accountFields, row, tried?.fields), createSeenField(fingerprintRow(row))];
  return { ...linkCustomer(visit), title: 'Edit', fields };
});

async function proposeEdit(visit: Visit): Promise<Proposal> {
  const { ports, parameter, field } = visit;
  const account = parameter('account');
  const row = (await ports.tables.get('accounts', account)) ?? {};
  const attributes = readForm(accountFields, visit.fields, row);
  const plan = await planEditAccount(ports, { account, seen: field('seen'), attributes });
  return proposeWrites(visit, plan, {
    title: `Edit ${account}`,
    back: customerPathOf(account),
    verb: 'Save',
    grave: plan.questions.length > 0,
    report: () => ({ lines: plan.effect }),
  });
}

const closePage = buildFormPage((visit) => ({
  ...linkCustomer(visit),
  title: `Close customer ${visit.parameter('account')}`,
  intro: renderLead('All keys are rejected. Nothing is deleted, so you can still create statements.'),
}));

async function proposeClose(visit: Visit): Promise<Proposal> {
  const account = visit.parameter('account');
  const plan = await planCloseAccount(visit.ports, account);
  return proposeWrites(visit, plan, {
    title: `Close customer ${account}`,
    back: customerPathOf(account),
    verb: 'Close customer',
    grave: true,
    // The page lists the steps that are left, from the customer's state.
    report: () => ({ lines: describeClosure(plan).slice(0, 1), next: [] }),
  });
}

const reopenPage = buildFormPage((visit) => ({
  ...linkCustomer(visit),
  title: `Reopen customer ${visit.parameter('account')}`,
}));

async function proposeReopen(visit: Visit): Promise<Proposal> {
  const account = visit.parameter('account');
  return proposeWrites(visit, await planReopenAccount(visit.ports, account), {
    title: `Reopen customer ${account}`,
    back: customerPathOf(account),
    verb: 'Reopen customer',
    report: () => ({ lines: [`Reopened ${account} (live within 30 s).`] }),
  });
}

const erasePage = buildFormPage((visit) => ({
  ...linkCustomer(visit),
  title: `Erase the contact data of ${visit.parameter('account')}`,
  intro: renderLead('The ledger and grants stay. The next page lists all data that is erased or stays.'),
}));

async function proposeErase(visit: Visit): Promise<Proposal> {
  const account = visit.parameter('account');
  const plan = await planEraseAccount(visit.ports, account);
  return proposeWrites(visit, plan, {
    title: `Erase the contact data of ${account}`,
    back: customerPathOf(account),
    verb: 'Erase contact data',
    grave: true,
    report: () => ({ lines: describeErasure(plan), next: [] }),
  });
}

const grantPage = buildFormPage((visit, tried) => ({
  ...linkCustomer(visit),
  title: 'Top up',
  fields: listGrantFields(visit, tried),
}));

const listGrantFields = (visit: Visit, tried?: SentForm): Field[] => [
  {
    name: 'amount',
    label: 'Amount (¥)',
    input: 'decimal',
    required: true,
    placeholder: '50',
    value: visit.query('amount'),
    help: 'At most 9 decimals. A negative amount is deducted.',
  },
  {
    name: 'reason',
    label: 'Reason',
    help: 'The customer sees this in their usage.',
    placeholder: 'paid by card',
    value: visit.query('reason'),
  },
  {
    name: 'id',
    label: '',
    kind: 'hidden',
    // Created with the form or by the linking page, so a form that is sent twice credits once.
    value: tried?.fields['id'] || visit.query('id') || createFormId(visit),
  },
];

async function readBalance({ ports, parameter }: Visit): Promise<NanoYuan> {
  const quota = await ports.ledger.quota(parameter('account'));
  return quota && 'row' in quota ? quota.row.available : 0n;
}

const paybackPage = buildFormPage(async (visit, tried) => {
  const available = await readBalance(visit);
  const filled: Record<string, Partial<Field>> = {
    amount: {
      value: visit.query('amount') || (available > 0n ? formatYuan(available) : ''),
      help: `At most the balance of ${formatMoney(available)}.`,
    },
    reason: { value: visit.query('reason') || 'paid back' },
  };
  return {
    ...linkCustomer(visit),
    title: isUndo(visit.query('id') || tried?.fields['id']) ? 'Undo a grant' : 'Pay back',
    intro: renderLead('Deducts an amount that you paid back to the customer or credited by mistake.'),
    fields: listGrantFields(visit, tried).map((each) => Object.assign({}, each, filled[each.name])),
  };
});

async function proposeGrant(visit: Visit): Promise<Proposal> {
  const account = visit.parameter('account');
  return proposeCredit(visit, visit.field('amount'), { title: `Top up ${account}`, verb: 'Top up' });
}

async function proposePayback(visit: Visit): Promise<Proposal> {
  const amount = parseYuan(visit.field('amount'));
  if (amount === undefined || amount <= 0n)
    throw usageFailure('amount: enter yuan above 0, with at most 9 decimals');
  const account = visit.parameter('account');
  const balance = await readBalance(visit);
  if (amount > balance) {
    // A second tab may repeat a deduction that lowered the balance. The error must not advise another one.
    const made = await findGrant(visit.ports, { account, grantId: visit.field('id') });
    throw usageFailure(
      made
        ? `grant "${made.grantId}" already exists, so nothing more is deducted`
        : `amount: exceeds the balance of ${formatMoney(balance)}. To correct a mistake, top up a negative amount`,
    );
  }
  const [verb, end] = isUndo(visit.field('id')) ? ['Take back', 'from'] : ['Pay back', 'to'];
  const words = `${verb} ${formatMoney(amount)}`;
  const title = `${words} ${end} ${account}`;
  return proposeCredit(visit, formatYuan(-amount), { title, verb: words });
}

const undoPrefix = 'undo-';
const isUndo = (grantId = ''): boolean => grantId.startsWith(undoPrefix);

/** A second grant undoes the first, because ledger rows are permanent. Its id names the first one, so it applies once. */
function linkUndo({ account, grantId, amount }: GrantPlan): [path: string, words: string] {
  const path = `${customerPathOf(account)}/${amount > 0n ? 'payback' : 'grant'}`;
  const filled = {
    amount: formatYuan(amount > 0n ? amount : -amount),
    id: undoPrefix + grantId,
    reason: `correction of ${grantId}`,
  };
  return [buildPath(path, filled), 'Undo'];
}

async function proposeCredit(
  visit: Visit,
  amount: string,
  words: Pick<Proposal, 'title' | 'verb'>,
): Promise<Proposal> {
  const { ports, parameter, field } = visit;
  const account = parameter('account');
  const input = { account, amount, reason: parseText(field('reason')), id: parseText(field('id')) };
  const plan = await planGrantAmount(ports, input);
  const path = customerPathOf(account);
  const proposal = createProposal(plan, { ...words, back: path, grave: plan.amount < 0n }, async () => {
    const made = await carryOutGrant(ports, plan, grantWaitMs);
    return { ...describeGrantOutcome(plan, made), next: [[path, `Open ${account}`], linkUndo(plan)] };
  });
  const balance = await readBalance(visit);
  // Calls change the balance until the confirmation, but the effect must stay the same, so it leaves the balance out.
  const details = renderLead(
    `Balance now: ${formatMoney(balance)}. Balance after: ${formatMoney(balance + plan.amount)}.`,
  );
  return { ...proposal, details };
}
