/** The results of actions in sentences: the terminal prints them, the console shows them. */
import type { CloseAccountPlan, EraseAccountPlan } from '../../shared/operate/customers/close-account.ts';
import type { GrantMade, GrantPlan } from '../../shared/operate/customers/grants.ts';
import { formatMoney } from '../../shared/operate/plan.ts';
import { listTexts } from '../../shared/wire/json.ts';

interface ActionReport {
  lines: string[];
  warnings: string[];
}

const describeCredit = (account: string, amount: bigint, grantId: string): string =>
  amount < 0n
    ? `Took ${formatMoney(-amount)} from ${account} (grant "${grantId}")`
    : `Credited ${formatMoney(amount)} to ${account} (grant "${grantId}")`;

/** Describes the outcome of a grant or a refund. If an earlier run wrote it, nothing was credited now. */
export function describeGrantOutcome(
  { account, grantId, amount }: GrantPlan,
  { made, isApplied, available }: GrantMade,
): ActionReport {
  const isWritten = isGrantWritten(made);
  const sentences = listTexts(
    isWritten && `${describeCredit(account, amount, grantId)}.`,
    available !== undefined && `Balance: ${formatMoney(available)}.`,
  );
  return {
    lines: isApplied && sentences.length > 0 ? [sentences.join(' ')] : [],
    warnings: listTexts(
      !isWritten && `Grant "${grantId}" already existed; nothing was written.`,
      !isApplied &&
        `Grant "${grantId}" is pending and will be applied within minutes: see \`customer show\`.`,
    ),
  };
}

export const isGrantWritten = (made: GrantMade['made']): boolean =>
  made.some(({ table }) => table === 'grants');

export const describeClosure = ({ account, next }: CloseAccountPlan): string[] => [
  `Closed ${account}. Its rows, grants and ledger are kept.`,
  next.length === 0 ? 'There is no balance to pay back.' : 'To pay back the balance:',
  ...next.map((step, at) => `  ${at + 1}. ${step}`),
];

export const describeErasure = ({ account, remains }: EraseAccountPlan): string[] => [
  `Erased the contact data of ${account}. Still stored:`,
  ...remains.map((each) => `  ${each}`),
];
