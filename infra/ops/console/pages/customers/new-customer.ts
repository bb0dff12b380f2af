/** A new customer: account, first top-up and key in one step, by the plan of `customer new`. */
import { formatYuan } from '../../../../../shared/billing/amount.ts';
import {
  carryOutNewCustomer,
  planNewCustomer,
} from '../../../../../shared/operate/customers/new-customer.ts';
import { welcomeMessage } from '../../../../../shared/operate/customers/welcome-message.ts';
import { usageFailure } from '../../../../../shared/operate/operator-failure.ts';
import type { Field, Tried } from '../../layout/form.ts';
import type { Page } from '../../layout/frame.ts';
import { grantLines } from '../../visit/grant-lines.ts';
import { ofPlan, type Proposal } from '../../visit/proposals.ts';
import type { Routes } from '../../visit/routes.ts';
import { typed, typedList } from '../../visit/typed-fields.ts';
import type { Visit } from '../../visit/visit.ts';
import { customerPath, formPage } from './form-page.ts';

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
