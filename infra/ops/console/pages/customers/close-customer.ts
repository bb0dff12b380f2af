/** The end of a customer, by the plan of `customer close`. */
import { planCloseAccount } from '../../../../../shared/operate/customers/close-account.ts';
import { carryOutWrites } from '../../../../../shared/operate/row-writes.ts';
import type { Tried } from '../../layout/form.ts';
import type { Page } from '../../layout/frame.ts';
import { ofWrites, type Proposal } from '../../visit/proposals.ts';
import type { Routes } from '../../visit/routes.ts';
import type { Visit } from '../../visit/visit.ts';
import { customerPath, formPage } from './form-page.ts';

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
