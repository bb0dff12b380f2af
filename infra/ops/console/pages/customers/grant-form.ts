/** The top-up of a customer, by the plan of `account grant`. */
import { carryOutGrant, planGrantAmount } from '../../../../../shared/operate/accounts/grant-amount.ts';
import { isoTime } from '../../../../../shared/wire/iso-time.ts';
import { type Field, type Tried } from '../../layout/form.ts';
import type { Page } from '../../layout/frame.ts';
import { grantLines } from '../../visit/grant-lines.ts';
import { ofPlan, type Proposal } from '../../visit/proposals.ts';
import type { Routes } from '../../visit/routes.ts';
import type { Visit } from '../../visit/visit.ts';
import { customerPath, formPage } from './form-page.ts';
import { typed } from '../../visit/typed-fields.ts';

const appliedWaitMs = 10_000;

export function grantFormPage(routes: Routes): void {
  routes.form('/customers/:account/grant', { page: grantPage, propose: proposeGrant });
}

/** The id is made with the form, or by the page that led here: a form that is sent twice grants once. */
const grantFields = ({ ports, nowMs, query }: Visit, tried: Tried | undefined): Field[] => [
  {
    name: 'amount',
    label: 'Amount, yuan',
    input: 'decimal',
    required: true,
    placeholder: '50',
    value: query('amount'),
    help: 'At most 9 decimals. Below 0 is a correction.',
  },
  {
    name: 'reason',
    label: 'Reason',
    help: 'The customer sees it in their usage.',
    placeholder: 'paid by card',
    value: query('reason'),
  },
  {
    name: 'id',
    label: '',
    kind: 'hidden',
    value:
      tried?.fields['id'] ||
      query('id') ||
      `${isoTime(nowMs).replaceAll(/[-:]/g, '')}-${ports.random.hex(4)}`,
  },
];

const grantPage = async (visit: Visit, tried?: Tried): Promise<Page> =>
  formPage(visit, tried, {
    title: 'Top up',
    account: visit.part('account'),
    fields: grantFields(visit, tried),
    verb: 'Go on',
  });

async function proposeGrant({ ports, part, field }: Visit): Promise<Proposal> {
  const account = part('account');
  const input = { account, amount: field('amount'), reason: typed(field('reason')), id: typed(field('id')) };
  const plan = await planGrantAmount(ports, input);
  const path = customerPath(account);
  return {
    ...ofPlan(plan, { title: `Top up ${account}`, back: path, verb: 'Grant it' }),
    async carryOut(onProgress) {
      onProgress('written; the relay applies it');
      return {
        lines: grantLines(plan, await carryOutGrant(ports, plan, appliedWaitMs)),
        next: [[path, `To ${account}`]],
      };
    },
  };
}
