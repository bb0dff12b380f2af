/** What came of an action, in sentences: the terminal prints them, the console shows them. */
import { formatYuan } from '../../shared/billing/price.ts';
import type { CloseAccountPlan } from '../../shared/operate/customers/edit-account.ts';
import type { GrantMade, GrantPlan } from '../../shared/operate/customers/grants.ts';

interface Said {
  lines: string[];
  warnings: string[];
}

/** Of a grant or a refund. An earlier run may have written it. */
export function grantSaid(
  { account, grantId, amount }: GrantPlan,
  { made, isApplied, available }: GrantMade,
): Said {
  const balance = available === undefined ? '' : `${formatYuan(available)} yuan are available now`;
  return {
    lines: [
      ...(isGrantWritten(made) ? [`grant ${grantId} of ${formatYuan(amount)} yuan is written.`] : []),
      ...(isApplied ? [`It is applied. ${account}: ${balance}.`] : []),
    ],
    warnings: [
      ...(isGrantWritten(made) ? [] : [`grant ${grantId} was written before; nothing is written again`]),
      ...(isApplied ? [] : ['Not applied yet. It will be within minutes: see `customer show`.']),
    ],
  };
}

export const isGrantWritten = (made: GrantMade['made']): boolean =>
  made.some(({ table }) => table === 'grants');

export const closedLines = ({ account, next }: CloseAccountPlan): string[] => [
  `${account} is closed; its rows, grants and ledger stay.`,
  next.length === 0 ? 'Nothing is left to pay back.' : 'To pay back what is left:',
  ...next.map((step, at) => `  ${at + 1}. ${step}`),
];
