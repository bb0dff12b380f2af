/** A statement as lines of one column of amounts: what comes before adds up to what comes after. For CSV and JSON. */
import { formatYuan } from '../../billing/amount.ts';
import type { DailyFigures } from '../../billing/daily/daily-figures.ts';
import type { Statement } from './statement.ts';

export const statementColumns = [
  'kind',
  'day',
  'model',
  'grant',
  'calls',
  'plan_calls',
  'prompt_tokens',
  'cached_tokens',
  'completion_tokens',
  'amount',
  'reason',
  'failed_calls',
] as const;

/** `calls` had a whole answer. The sums have the tokens of all calls, also of those that failed and cost nothing. */
export const statementFigures = ({ counts, amounts }: DailyFigures) => ({
  calls: (counts.calls ?? 0) - (counts.failures ?? 0),
  failed_calls: counts.failures ?? 0,
  plan_calls: counts.plan_calls ?? 0,
  prompt_tokens: counts.prompt_tokens ?? 0,
  cached_tokens: counts.cached_tokens ?? 0,
  completion_tokens: counts.completion_tokens ?? 0,
  amount: formatYuan(-(amounts.charged ?? 0n)),
});

/** Undefined: no call failed. */
export const failedNote = ({ counts }: DailyFigures): string | undefined =>
  (counts.failures ?? 0) === 0
    ? undefined
    : 'Failed calls had no whole answer: they cost nothing, but for what was answered before they failed. The tokens are those of all calls.';

/** Charges are below 0; the amounts before `closing` add up to it exactly. */
export function statementRows({ opening, closing, month, grants, days }: Statement): object[] {
  return [
    { kind: 'opening', day: `${month}-01`, amount: formatYuan(opening) },
    ...grants.map(({ grantId, amount, applied, reason }) => ({
      kind: 'grant',
      day: applied?.slice(0, 10),
      grant: grantId,
      amount,
      ...(reason !== undefined && { reason }),
    })),
    ...days.map(({ day, model, figures }) =>
      Object.assign({ kind: 'calls', day, model }, statementFigures(figures)),
    ),
    { kind: 'closing', amount: formatYuan(closing) },
  ];
}
