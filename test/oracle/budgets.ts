import { exactYuan, nano } from './exact.ts';
import { budgetDay } from './plan-month.ts';

/** An entry of `budgets` of an account, as docs/tables.md describes it. */
export interface BudgetText {
  by: string;
  name?: string;
  amount: number | string;
  period: 'day' | 'month';
}

/** The end user and tags of a call, as its client names them. */
export interface Named {
  endUser?: string | undefined;
  tags?: Readonly<Record<string, string>> | undefined;
}

/** The budget of one name in one period. */
export interface NamedBudget {
  /** `tag:team search`; calls without a name share one. */
  of: string;
  period: string;
  most: bigint;
}

/** Returns the tag budgets that a call counts on, in the UTC day and month in which it began (docs/billing.md). */
export function namedBudgets(
  all: readonly BudgetText[],
  { endUser, tags = {} }: Named,
  startedMs: number,
): NamedBudget[] {
  const kinds = new Set(all.map(({ by, period }) => `${by} ${period}`));
  return [...kinds].flatMap((kind) => {
    const alike = all.filter(({ by, period }) => `${by} ${period}` === kind);
    const [by = '', written] = kind.split(' ');
    const name = (by === 'end_user' ? endUser : tags[by.replace('tag:', '')]) ?? '';
    const others = alike.find((each) => each.name === undefined || each.name === '*');
    const entry = alike.find((each) => each.name === name) ?? others;
    const day = budgetDay(startedMs);
    const period = written === 'day' ? day : day.slice(0, 7);
    return entry ? [{ of: `${by} ${name}`, period, most: nano(exactYuan(entry.amount)) }] : [];
  });
}
