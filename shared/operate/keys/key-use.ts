/** View: what a key called and spent since a time, by hour and model, from the ledger rows of its account. */
import type { NanoYuan } from '../../billing/amount.ts';
import { addFigures, figuresOf, noFigures, type DailyFigures } from '../../billing/daily/daily-figures.ts';
import { ledgerTimeMs } from '../../billing/ledger-row.ts';
import { compareCodeUnits } from '../../wire/canonical-json.ts';
import { isoTime } from '../../wire/iso-time.ts';
import { selectRows } from '../ledger/select-rows.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import { refundedOf } from './refunded-calls.ts';

export interface KeyUse {
  sinceMs: number;
  /** Sorted by hour, then model. `hour`: `2026-11-22T09:00:00Z`. */
  hours: { hour: string; model: string; figures: DailyFigures }[];
  sum: DailyFigures;
  /** Of its charges, what refunds of single calls returned. */
  refunded: NanoYuan;
  /** A sentence for each row that cannot be read. */
  problems: string[];
}

export interface KeyUseWanted {
  account: string;
  /** Of the whole key. */
  hash: string;
  sinceMs: number;
}

/** Ledger rows have so many digits of the hash. */
const digitsOfHash = 12;
const hourMs = 3_600_000;

/** @param onProgress called with the number of further rows that were read */
export async function viewKeyUse(
  ports: OperatorPorts,
  { account, hash, sinceMs }: KeyUseWanted,
  onProgress: (count: number) => void = () => undefined,
): Promise<KeyUse> {
  const ids = new Set<string>();
  const hours = new Map<string, KeyUse['hours'][number]>();
  const problems: string[] = [];
  const key = hash.slice(0, digitsOfHash);
  for await (const page of selectRows(ports, { account, fromMs: sinceMs }, onProgress)) {
    problems.push(...page.problems);
    for (const row of page.rows) {
      if (row.kind === 'grant' || row.key !== key) continue;
      ids.add(row.id);
      const hour = isoTime(Math.floor(ledgerTimeMs(row) / hourMs) * hourMs);
      const name = `${hour} ${row.model}`;
      const { figures } = hours.get(name) ?? { figures: noFigures };
      hours.set(name, { hour, model: row.model, figures: addFigures(figures, figuresOf(row)) });
    }
  }
  const sorted = [...hours].toSorted(([a], [b]) => compareCodeUnits(a, b)).map(([, each]) => each);
  return {
    sinceMs,
    hours: sorted,
    sum: sorted.reduce((sum, { figures }) => addFigures(sum, figures), noFigures),
    refunded: await refundedOf(ports, account, ids),
    problems,
  };
}
