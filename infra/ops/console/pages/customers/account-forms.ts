/** Forms of a customer: a new key and the row of the account. */
import { rowMark } from '../../../../../shared/operate/config/row-mark.ts';
import { planEditAccount } from '../../../../../shared/operate/customers/edit-account.ts';
import { carryOutCreateKey, planCreateKey } from '../../../../../shared/operate/keys/create-key.ts';
import { usageFailure } from '../../../../../shared/operate/operator-failure.ts';
import { carryOutWrites } from '../../../../../shared/operate/row-writes.ts';
import { type Field, type Tried } from '../../layout/form.ts';
import type { Page } from '../../layout/frame.ts';
import { html, shownValue } from '../../layout/markup.ts';
import { ofPlan, ofWrites, type Proposal } from '../../visit/proposals.ts';
import type { Routes } from '../../visit/routes.ts';
import type { Visit } from '../../visit/visit.ts';
import { customerPath, formPage } from './form-page.ts';
import { typed, typedJson, typedList, typedNumber } from '../../visit/typed-fields.ts';

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
