/** The refund of a request, whole or in part. */
import { planRefundCharge } from '../../../../../shared/operate/accounts/refund-charge.ts';
import { carryOutGrant } from '../../../../../shared/operate/accounts/grant-amount.ts';
import type { Tried } from '../../layout/form.ts';
import { ownForm } from '../../visit/own-form.ts';
import type { Page } from '../../layout/frame.ts';
import { grantLines } from '../../visit/grant-lines.ts';
import { ofPlan, type Proposal } from '../../visit/proposals.ts';
import type { Routes } from '../../visit/routes.ts';
import type { Visit } from '../../visit/visit.ts';
import { typed } from '../../visit/typed-fields.ts';

const refundWaitMs = 10_000;

export function refundPages(routes: Routes): void {
  routes.form('/requests/:id/refund', { page: refundPage, propose: proposeRefund });
}

const refundPage = async (visit: Visit, tried?: Tried): Promise<Page> => {
  const id = visit.part('id');
  const path = `requests/${encodeURIComponent(id)}`;
  return {
    title: `Refund ${id}`,
    section: 'requests',
    above: [
      ['requests', 'Requests'],
      [path, id],
    ],
    body: ownForm(visit, {
      fields: [
        { name: 'amount', label: 'Amount, yuan', input: 'decimal', help: 'Empty: all that is left.' },
        { name: 'reason', label: 'Reason', help: 'The customer sees it in their usage.' },
      ],
      verb: 'Go on',
      cancel: path,
      tried,
    }),
  };
};

async function proposeRefund({ ports, part, field }: Visit): Promise<Proposal> {
  const id = part('id');
  const [amount, reason] = [typed(field('amount')), typed(field('reason'))];
  const plan = await planRefundCharge(ports, { id, amount, reason });
  return {
    ...ofPlan(plan, { title: `Refund ${id}`, back: `requests/${encodeURIComponent(id)}`, verb: 'Refund it' }),
    async carryOut() {
      const made = await carryOutGrant(ports, plan, refundWaitMs);
      return {
        lines: grantLines(plan, made),
        next: [[`customers/${encodeURIComponent(plan.account)}`, `To ${plan.account}`]],
      };
    },
  };
}
