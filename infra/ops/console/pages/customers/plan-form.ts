/** The plan that a customer holds, by the plan of `account plan`. */
import { planSetPlan } from '../../../../../shared/operate/accounts/set-plan.ts';
import { rowMark } from '../../../../../shared/operate/config/row-mark.ts';
import { carryOutWrites } from '../../../../../shared/operate/row-writes.ts';
import type { Tried } from '../../layout/form.ts';
import type { Page } from '../../layout/frame.ts';
import { shownValue } from '../../layout/markup.ts';
import { ofPlan, type Proposal } from '../../visit/proposals.ts';
import type { Routes } from '../../visit/routes.ts';
import { typed } from '../../visit/typed-fields.ts';
import type { Visit } from '../../visit/visit.ts';
import { customerPath, formPage } from './form-page.ts';

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
