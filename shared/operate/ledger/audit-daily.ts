/** Compares the daily sums of one account, of one channel or of what was served with those of the ledger rows, and corrects them if asked to. */
import { splitBehind, type DailyAudit, type DailyDifference } from '../../billing/audit/daily-audit.ts';
import type { DailySum } from '../../billing/daily/daily-sums.ts';
import type { Reading } from '../sum-reader.ts';
import type { OperatorPorts } from '../operator-ports.ts';

export interface DailyAuditing {
  /** Only days before this one are final. */
  daysBefore: string;
  rebuild: boolean;
}

export interface DailyOutcome {
  findings: string[];
  corrected: number;
  /** Sums by month and by model that lack rows of older versions: a rebuild makes them. */
  behind: number;
}

/** `items`: what was read before the rows were; absent: it is read now. */
interface DailyTask {
  id: string;
  audit: DailyAudit | undefined;
  items?: Reading<DailySum>[];
}

export const readDaily = async ({ ledger }: OperatorPorts, id: string): Promise<Reading<DailySum>[]> =>
  (await Array.fromAsync(ledger.daily(id))).flat();

export async function auditDaily(
  ports: OperatorPorts,
  { rebuild }: DailyAuditing,
  { id, audit, items: known }: DailyTask,
): Promise<DailyOutcome> {
  const items = known ?? (await readDaily(ports, id));
  const findings = items.flatMap((each) => ('problem' in each ? [`${each.key}: ${each.problem}`] : []));
  const sums = items.flatMap((each) => ('row' in each ? [each.row] : []));
  const left: DailyDifference[] = [];
  let corrected = 0;
  for (const difference of audit?.differences(id, sums) ?? []) {
    if (rebuild && (await ports.ledger.addToDaily(difference))) corrected += 1;
    else left.push(difference);
  }
  const { behind, findings: wrong } = splitBehind(left);
  return { findings: [...findings, ...wrong], corrected, behind };
}
