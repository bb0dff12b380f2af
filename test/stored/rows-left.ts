/** Checks the tables after all stories: charges, sums, and that all stored data expires. */
import { sumOf, type Row } from '../support/faulted-tables.ts';
import { hold } from './seen-events.ts';
import type { StackRun } from './stack-runs.ts';
import { priceOf } from './slow-answer.ts';
import { accountOf, type RowsLeft } from './stored-stack.ts';

const daySeconds = 86_400;
const nano = 1_000_000_000;
const endings = ['settled', 'expired', 'released'];

export interface Charged {
  /** In yuan. */
  sum: number;
  rows: Record<string, number>;
}

/** Returns the charges and the errors. */
export function checkedRows(left: RowsLeft, runs: StackRun[]): { charged: Charged; wrong: string[] } {
  const wrong: string[] = [];
  const check = (of: string, holds: () => void): void => {
    try {
      holds();
    } catch (error) {
      wrong.push(`${of}: ${(error as Error).message}`);
    }
  };
  check('rows', () => checkExpiry(left));
  for (const run of runs) {
    const ofAccount = ({ account }: Row): boolean => String(account).split('#')[0] === accountOf(run.seed);
    const [ledger, quotas] = [left.ledger.filter(ofAccount), left.quotas.filter(ofAccount)];
    check(`seed ${run.seed}, ${run.kind}, ${run.befell}`, () => checkAccount(run, { ledger, quotas }));
  }
  const rows = Object.fromEntries(
    endings.map((kind) => [kind, left.ledger.filter((row) => row['kind'] === kind).length]),
  );
  return { charged: { sum: sumOf(left.quotas, 'spent') / nano, rows }, wrong };
}

function checkExpiry({ responses, runtime }: RowsLeft): void {
  const nowSeconds = Date.now() / 1000;
  for (const { id, expires } of [
    ...responses,
    ...runtime.filter((row) => String(row['id']).startsWith('request#')),
  ]) {
    const name = String(id);
    hold(typeof expires === 'number', `${name} never expires`);
    const most = name.includes('#e#')
      ? 40 * 60
      : /#result|^request#/.test(name)
        ? daySeconds
        : 30 * daySeconds;
    hold(expires < nowSeconds + most + 60, `${name} expires at ${expires}`);
  }
}

/** Each request is closed once, each answer is charged once and exactly, and no money is lost or created. */
function checkAccount(run: StackRun, { ledger, quotas }: Pick<RowsLeft, 'ledger' | 'quotas'>): void {
  const closed = ledger.filter(({ kind }) => endings.includes(String(kind)));
  const ids = closed.map(({ id }) => String(id));
  hold(new Set(ids).size === ids.length, 'a request was closed twice');
  const [available, spent, granted] = ['available', 'spent', 'granted'].map((name) =>
    sumOf(quotas, name),
  ) as [number, number, number];
  hold(available + spent === granted, `${available} + ${spent} is not ${granted}`);
  const charged = Math.round(sumOf(closed, 'charge') * nano);
  hold(charged === spent, `the ledger has ${charged}, the account ${spent}`);
  const charges = closed.map((row) => ({
    kind: row['kind'],
    charge: Math.round(Number(row['charge'] ?? 0) * nano),
  }));
  const said = JSON.stringify(charges);
  const settled = charges.filter(({ kind }) => kind === 'settled');
  const whole = priceOf(run.pieces);
  if (run.kind === 'background') {
    hold(settled.length <= 1, `charged twice: ${said}`);
    if (run.status === 'completed') hold(charges.length === 1, `closed ${said}`);
    return;
  }
  const next = priceOf(1, run.pieces);
  hold(
    settled.every(({ charge }) => charge === whole || charge === next),
    `${said}, where an answer costs ${whole} and the next ${next}`,
  );
  const answers = settled.filter(({ charge }) => charge === whole).length;
  hold(answers <= 1, `charged twice: ${said}`);
  if (run.kind.startsWith('keyed')) {
    hold(settled.length <= 1, `charged twice: ${said}`);
    if (run.status === '200')
      hold(
        charges.some(({ charge }) => charge > 0),
        `an answer was free: ${said}`,
      );
  }
}
