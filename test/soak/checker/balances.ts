/** Checks accounts: balances add up, match the ledger and the daily sums, and no reservation stays open. */
import { skewMaxMs, type Finding, type Observations, type Row } from './observations.ts';
import { isCallRow, isLateRow, nanoOf } from './ledger.ts';

/** The sweeper runs once a minute; a table stream lags by a few seconds. */
const sweepSlackMs = 75_000;

export interface Balance {
  available: bigint;
  open: bigint;
  spent: bigint;
  granted: bigint;
  moved: bigint;
  calls: number;
}

const amount = (value: unknown): bigint => BigInt(`${(value as number | bigint | undefined) ?? 0}`);

function balanceOf(item: Row): Balance {
  const open = Object.values((item['open'] as Record<string, unknown[]> | undefined) ?? {});
  return {
    available: amount(item['available']),
    open: open.reduce((sum, [, held]) => sum + amount(held), 0n),
    spent: amount(item['spent']),
    granted: amount(item['granted']),
    moved: amount(item['moved']),
    calls: open.length,
  };
}

/** Sums over the parts of each account. */
export function balancesOf(quotas: readonly Row[]): Map<string, Balance> {
  const balances = new Map<string, Balance>();
  for (const item of quotas) {
    const name = String(item['account']).replace(/#\d+$/, '');
    const part = balanceOf(item);
    const sum = balances.get(name);
    if (!sum) balances.set(name, part);
    else for (const key of ['available', 'open', 'spent', 'granted', 'moved'] as const) sum[key] += part[key];
    if (sum) sum.calls += part.calls;
  }
  return balances;
}

const isDay = ({ id, period }: Row): boolean =>
  String(id).startsWith('account#') && /^day#(?!.*#\(grants\)$)/.test(String(period));
const isOfModel = ({ id }: Row): boolean => /^served(\.\d+)?$/.test(String(id));

const sumsOf = (name: string): Record<string, (item: Row) => boolean> => ({
  days: (item) => item['id'] === `account#${name}` && isDay(item),
  months: ({ id, period }) => /^month\.\d+#/.test(String(id)) && period === `account#${name}`,
});

const added = (items: Row[]): { charged: bigint; calls: number } => ({
  charged: items.reduce((total, item) => total + nanoOf(item['charged'] ?? 0), 0n),
  calls: items.reduce((total, item) => total + Number(item['calls'] ?? 0), 0),
});

export function balanceFindings({ tables, granted }: Pick<Observations, 'tables' | 'granted'>): Finding[] {
  const findings: Finding[] = [];
  const say = (what: string): void => void findings.push({ rule: 'balance', what });
  for (const item of tables.quotas) {
    const part = balanceOf(item);
    const off = part.available + part.open + part.spent - part.granted - part.moved;
    if (off !== 0n)
      say(`${String(item['account'])} is off by ${off}: available + open + spent - granted - moved`);
  }
  for (const [name, sum] of balancesOf(tables.quotas)) {
    if (sum.moved !== 0n) say(`${name}: what moved between its parts sums to ${sum.moved}`);
    const wanted = granted.get(name);
    if (wanted !== undefined && sum.granted !== nanoOf(wanted))
      say(`${name} was granted ${wanted}, and has ${sum.granted}`);
    const rows = tables.ledger.filter((row) => row['account'] === name && isCallRow(row));
    const charged = rows.reduce((total, row) => total + nanoOf(row['charge'] ?? 0), 0n);
    if (charged !== sum.spent) say(`${name} has spent ${sum.spent}, its ledger rows have ${charged}`);
    // A cancelled reservation has no call.
    const calls = rows.filter((row) => !isLateRow(row) && row['kind'] !== 'cancelled').length;
    for (const [what, isOf] of Object.entries(sumsOf(name))) {
      const sums = added(tables.daily.filter(isOf));
      if (sums.charged !== charged)
        say(`${name}: its ${what} sum to ${sums.charged}, its ledger rows to ${charged}`);
      if (sums.calls !== calls) say(`${name}: its ${what} count ${sums.calls} calls, the ledger ${calls}`);
    }
  }
  const [days, models] = [isDay, isOfModel].map((isOf) => added(tables.daily.filter(isOf)));
  if (days?.charged !== models?.charged || days?.calls !== models?.calls)
    say(
      `models sum to ${models?.charged} and ${models?.calls} calls, days to ${days?.charged} and ${days?.calls}`,
    );
  return findings;
}

export function holdFindings(seen: Observations): Finding[] {
  const skewed = seen.disturbances.some(({ kind }) => kind === 'clock-skew');
  const slackMs = sweepSlackMs + seen.sweepGraceSeconds * 1000 + (skewed ? skewMaxMs : 0);
  const leaked = seen.holds.filter(({ leaseEnd, lastSeenMs }) => lastSeenMs > leaseEnd * 1000 + slackMs);
  const findings = leaked.map(({ id, account, leaseEnd, lastSeenMs }) => ({
    rule: 'hold',
    what: `${id} of ${account} is held ${Math.round(lastSeenMs / 1000 - leaseEnd)} s after its lease ended`,
  }));
  const open = [...balancesOf(seen.tables.quotas)].filter(([, { calls }]) => calls > 0);
  return [
    ...findings,
    ...open.map(([name, { calls, open: held }]) => ({
      rule: 'hold',
      what: `${name} has ${calls} open reservations (${held}) at the end, when no call runs`,
    })),
  ];
}
