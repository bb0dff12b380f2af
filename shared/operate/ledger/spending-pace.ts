/** View: what each account spent, and in how many days: this month, and in its first week the month before too. Reads sums. */
import type { NanoYuan } from '../../billing/amount.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { AccountMonth } from '../sum-reader.ts';
import { rowsIn } from './sum-rows.ts';
import { utcMonth } from '../../wire/iso-time.ts';

export interface SpendingPace {
  /** Accounts that were charged something. */
  charged: Map<string, NanoYuan>;
  /** For so long: at least one, since the first hours say little. */
  days: number;
  /** Accounts that had a call or a grant in the running month. */
  running: AccountMonth[];
  problems: string[];
}

const dayMs = 86_400_000;
const ownPaceDays = 7;

export async function spendingPace({
  clock,
  ledger,
}: Pick<OperatorPorts, 'clock' | 'ledger'>): Promise<SpendingPace> {
  const nowMs = clock.now();
  const startMs = startOf(nowMs);
  const isEarly = nowMs - startMs < ownPaceDays * dayMs;
  const fromMs = isEarly ? startOf(startMs - dayMs) : startMs;
  const months = isEarly ? [nowMs, fromMs] : [nowMs];
  const read = await Promise.all(months.map(async (ms) => rowsIn(ledger.monthAccounts(utcMonth(ms)))));
  const charged = new Map<string, NanoYuan>();
  for (const { account, figures } of read.flatMap(({ rows }) => rows)) {
    const sum = (charged.get(account) ?? 0n) + (figures.amounts.charged ?? 0n);
    if (sum > 0n) charged.set(account, sum);
  }
  return {
    charged,
    days: Math.max(1, (nowMs - fromMs) / dayMs),
    running: read[0]?.rows ?? [],
    problems: read.flatMap(({ problems }) => problems),
  };
}

const startOf = (ms: number): number => Date.parse(`${utcMonth(ms)}-01T00:00:00Z`);
