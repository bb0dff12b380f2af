/** Forms of a customer: a new key and the row of the account. */
import { rowMark, carryOutWrites } from '../../../../shared/operate/rows.ts';
import {
  planEditAccount,
  planSetPlan,
  planCloseAccount,
} from '../../../../shared/operate/customers/edit-account.ts';
import { carryOutCreateKey, planCreateKey } from '../../../../shared/operate/keys/edit-key.ts';
import { usageFailure } from '../../../../shared/operate/plan.ts';
import { type Field, type Tried, typed, typedJson, typedList, typedNumber } from '../layout/form.ts';
import type { Page } from '../layout/frame.ts';
import { html, shownValue } from '../layout/markup.ts';
import {
  ofPlan,
  ofWrites,
  type Proposal,
  type Routes,
  type Visit,
  customerPath,
  formPage,
} from '../visit/visit.ts';
import { formatYuan } from '../../../../shared/billing/amount.ts';
import {
  carryOutNewCustomer,
  planNewCustomer,
  welcomeMessage,
} from '../../../../shared/operate/customers/new-customer.ts';
import { grantLines } from './grants.ts';

export function accountFormPages(routes: Routes): void {
  routes.form('/customers/:account/keys/new', { page: keyPage, propose: proposeKey });
  routes.form('/customers/:account/edit', { page: editPage, propose: proposeEdit });
}

const keyPage = async (visit: Visit, tried?: Tried): Promise<Page> =>
  formPage(visit, tried, {
    title: 'New key',
    account: visit.part('account'),
    lead: 'The key is shown once, after it is made.',
    fields: [
      {
        name: 'models',
        label: 'Models',
        kind: 'area',
        help: 'The only models it may call, apart by commas or lines. Empty: every model.',
      },
      { name: 'expires_at', label: 'Works until', placeholder: '2027-01-01', help: 'Empty: no end.' },
      { name: 'rpm', label: 'Calls a minute', input: 'numeric', help: 'Empty: no limit.' },
      { name: 'max_concurrency', label: 'Calls at once', input: 'numeric', help: 'Empty: no limit.' },
      {
        name: 'official',
        label: 'Official mode',
        kind: 'check',
        help: 'Calls deduct nothing from the balance.',
      },
    ],
    verb: 'Go on',
  });

async function proposeKey({ ports, part, field }: Visit): Promise<Proposal> {
  const account = part('account');
  const models = typedList(field('models'));
  const [rpm, atOnce] = [
    numberField('rpm', field('rpm')),
    numberField('max_concurrency', field('max_concurrency')),
  ];
  const plan = await planCreateKey(ports, {
    account,
    ...(models.length > 0 && { models }),
    ...(field('expires_at') !== '' && { expires: field('expires_at') }),
    ...(rpm !== undefined && { rpm }),
    ...(atOnce !== undefined && { maxConcurrency: atOnce }),
    official: field('official') === 'yes',
  });
  return {
    ...ofPlan(plan, { title: `New key of ${account}`, back: customerPath(account), verb: 'Make it' }),
    async carryOut() {
      const made = await carryOutCreateKey(ports, plan);
      return {
        lines: [`A key of ${account} is made: ${made.hint}. It works within 5 seconds.`],
        secret: { name: 'The key', value: made.secretKey },
      };
    },
  };
}

function numberField(name: string, text: string): number | undefined {
  const number = typedNumber(text);
  if (typeof number === 'string') throw usageFailure(`${name}: found ${text}, wanted a whole number`);
  return number;
}

const limits = ['concurrency', 'rpm', 'tpm'] as const;
const limitLabels = { concurrency: 'Calls at once', rpm: 'Calls a minute', tpm: 'Tokens a minute' };

async function editPage(visit: Visit, tried?: Tried): Promise<Page> {
  const account = visit.part('account');
  const row = await visit.ports.tables.get('accounts', account);
  if (!row) throw usageFailure(`there is no account ${account}`);
  return formPage(visit, tried, {
    title: 'Edit',
    account,
    fields: [
      {
        name: 'note',
        label: 'Note',
        value: shownValue(row['note']),
        help: 'For you. The customer does not see it.',
      },
      {
        name: 'enabled',
        label: 'Calls',
        kind: 'choice',
        value: row['enabled'] === undefined || row['enabled'] === true ? 'yes' : 'no',
        choices: [
          ['yes', 'allowed'],
          ['no', 'refused, with every key'],
        ],
      },
      ...limits.map((name): Field => ({
        name,
        label: limitLabels[name],
        input: 'numeric',
        value: shownValue(row[name]),
        help: 'Over all keys. Empty: no limit.',
      })),
      {
        name: 'alert_below',
        label: 'Alert below, yuan',
        input: 'decimal',
        value: shownValue(row['alert_below']),
        help: 'Empty: no alert.',
      },
      {
        name: 'contact',
        label: 'Contact',
        kind: 'area',
        value: shownValue(row['contact']),
        help: html`A map, such as <code>{"email": "ops@example.com"}</code>.`,
      },
      { name: 'seen', label: '', kind: 'hidden', value: rowMark(row) },
    ],
    verb: 'Go on',
  });
}

async function proposeEdit({ ports, part, field }: Visit): Promise<Proposal> {
  const account = part('account');
  const contact = typedJson('contact', field('contact'));
  const plan = await planEditAccount(ports, {
    account,
    seen: field('seen'),
    attributes: {
      note: typed(field('note')),
      enabled: field('enabled') === 'no' ? false : undefined,
      ...Object.fromEntries(limits.map((name) => [name, typedNumber(field(name))])),
      alert_below: typedNumber(field('alert_below')),
      contact: Object.keys(contact).length === 0 ? undefined : contact,
    },
  });
  return {
    ...ofWrites(plan, { title: `Edit ${account}`, back: customerPath(account), verb: 'Write this' }),
    grave: plan.questions.length > 0,
    async carryOut() {
      await carryOutWrites(ports, plan);
      return { lines: plan.effect };
    },
  };
}

// The plan that a customer holds, by the plan of `account plan`.

export function planPages(routes: Routes): void {
  routes.form('/customers/:account/plan', { page: planPage, propose: proposePlan });
}

async function planPage(visit: Visit, tried?: Tried): Promise<Page> {
  const account = visit.part('account');
  const row = await visit.ports.tables.get('accounts', account);
  const held = (row?.['plan'] ?? {}) as Record<string, unknown>;
  return formPage(visit, tried, {
    title: 'Plan',
    account,
    fields: [
      {
        name: 'level',
        label: 'Level',
        kind: 'choice',
        value: shownValue(held['level']),
        choices: [
          ['', 'no plan'],
          ['1', '1'],
          ['2', '2'],
          ['3', '3'],
        ],
      },
      {
        name: 'since',
        label: 'Since',
        value: shownValue(held['since']),
        placeholder: '2026-11-01',
        help: 'Months are counted from here. Empty: as it is, else today.',
      },
      {
        name: 'until',
        label: 'Until',
        value: shownValue(held['until']),
        placeholder: '2027-11-01',
        help: 'Covers no call from then on. Empty: no end.',
      },
      // Of the plan alone: an edit of the rest of the row is not undone by this form.
      { name: 'seen', label: '', kind: 'hidden', value: rowMark(row?.['plan']) },
    ],
    verb: 'Go on',
  });
}

async function proposePlan({ ports, part, field }: Visit): Promise<Proposal> {
  const account = part('account');
  const level = field('level');
  const held =
    level === ''
      ? { none: true }
      : { level: Number(level), since: typed(field('since')), until: typed(field('until')) };
  const plan = await planSetPlan(ports, { account, ...held, seen: field('seen') });
  return {
    ...ofPlan(plan, { title: `Plan of ${account}`, back: customerPath(account), verb: 'Write it' }),
    async carryOut() {
      await carryOutWrites(ports, plan);
      return { lines: [...plan.effect, 'Live within 30 seconds.'], warnings: plan.warnings };
    },
  };
}

// The end of a customer, by the plan of `customer close`.

export function closeCustomerPage(routes: Routes): void {
  routes.form('/customers/:account/close', { page: closePage, propose: proposeClose });
}

const closePage = async (visit: Visit, tried?: Tried): Promise<Page> =>
  formPage(visit, tried, {
    title: 'Close',
    account: visit.part('account'),
    lead: 'All keys are refused. No row is deleted, so statements can be made later.',
    fields: [],
    verb: 'Go on',
  });

async function proposeClose({ ports, part }: Visit): Promise<Proposal> {
  const account = part('account');
  const plan = await planCloseAccount(ports, account);
  return {
    ...ofWrites(plan, {
      title: `Close ${account}`,
      back: customerPath(account),
      verb: 'Close it',
      grave: true,
    }),
    async carryOut() {
      await carryOutWrites(ports, plan);
      return {
        lines: [
          `${account} is closed; its rows, grants and ledger stay.`,
          plan.next.length === 0 ? 'Nothing is left to pay back.' : 'To pay back what is left:',
          ...plan.next.map((step, at) => `${at + 1}. ${step}`),
        ],
      };
    },
  };
}

// A new customer: account, first top-up and key in one step, by the plan of `customer new`.

const appliedWaitMs = 10_000;

export function newCustomerPage(routes: Routes): void {
  routes.form('/customers-new', { page, propose });
}

const fields: Field[] = [
  {
    name: 'account',
    label: 'Name',
    required: true,
    placeholder: 'acme',
    help: 'As it stands in all tables. It cannot be changed later.',
  },
  {
    name: 'amount',
    alsoNamed: 'grant',
    label: 'Amount, yuan',
    input: 'decimal',
    placeholder: '50',
    help: 'What the balance begins with. Empty: nothing.',
  },
  {
    name: 'contact',
    label: 'Contact',
    input: 'email',
    placeholder: 'ops@example.com',
    help: 'An e-mail address: alerts of the balance go there.',
  },
  { name: 'note', label: 'Note', help: 'For you. The customer does not see it.' },
  {
    name: 'models',
    label: 'Models of the key',
    kind: 'area',
    help: 'The only models it may call, apart by commas or lines. Empty: every model.',
  },
  {
    name: 'link',
    label: 'Link with the key in the message',
    kind: 'check',
    help: 'It opens the account page with the key. Whoever sees the link has the key.',
  },
];

const page = async (visit: Visit, tried?: Tried): Promise<Page> =>
  formPage(visit, tried, {
    title: 'New customer',
    lead: 'The account, its first top-up and a key in one step, with a message to send.',
    fields,
    verb: 'Go on',
  });

async function propose({ ports, field }: Visit): Promise<Proposal> {
  const account = field('account');
  if (account === '') throw usageFailure('account: found nothing, wanted a name');
  const models = typedList(field('models'));
  const plan = await planNewCustomer(ports, {
    account,
    grant: typed(field('amount')),
    contact: typed(field('contact')),
    note: typed(field('note')),
    ...(models.length > 0 && { models }),
  });
  const isLinked = field('link') === 'yes';
  return {
    ...ofPlan(plan, { title: `New customer ${account}`, back: 'customers', verb: 'Make it' }),
    async carryOut(onProgress) {
      onProgress('written; the relay applies the first grant');
      const { secretKey, hint, grant } = await carryOutNewCustomer(ports, plan, appliedWaitMs);
      const amount = plan.grant && formatYuan(plan.grant.amount);
      const { baseUrl, pages } = plan;
      return {
        lines: [
          `${account} is made, with the key ${hint}. It works within 5 seconds.`,
          ...(plan.grant && grant ? grantLines(plan.grant, grant) : []),
        ],
        warnings: [
          ...(grant?.problem === undefined ? [] : [grant.problem]),
          ...(baseUrl === undefined
            ? ['The address of the relay is not known here: put it into the message.']
            : []),
          ...(isLinked && !pages.account ? ['There is no link: the setting account_page is false.'] : []),
        ],
        secret: {
          name: 'The key',
          value: secretKey,
          message: welcomeMessage({ account, secretKey, baseUrl, amount, isLinked, pages }),
        },
        next: [[customerPath(account), `To ${account}`]],
      };
    },
  };
}
