/** View: what a customer called and was charged in the last days, from the sums of `daily`: one bounded read. */
import { addFigures, noFigures, type DailyFigures } from '../../billing/daily/daily-figures.ts';
import { dayOf, grantsModel } from '../../billing/daily/daily-keys.ts';
import type { DailySum } from '../../billing/daily/daily-sums.ts';
import { compareCodeUnits } from '../../wire/canonical-json.ts';
import { utcDay } from '../../wire/iso-time.ts';
import type { OperatorPorts } from '../operator-ports.ts';

/** Amounts in nano-yuan, tokens and calls as counts. Days are those of UTC, written `2026-11-22`. */
export interface CustomerUse {
  /** The first and the last day; all that is known of them and of the days between is in the sums. */
  from: string;
  to: string;
  /** False: so many models were called that the days before `from` were not read. */
  isWhole: boolean;
  /** Calls and grants of these days together. */
  sum: DailyFigures;
  /** Oldest first; days without calls are left out. */
  days: { day: string; figures: DailyFigures }[];
  /** What was charged most first. */
  models: { model: string; figures: DailyFigures }[];
  /** A sentence for each sum that cannot be read. */
  problems: string[];
}

export const useDays = 30;
/** Some 350 bytes each: 30 days of 66 models, or a week of 285. */
const sumsMax = 2000;
const dayMs = 86_400_000;

export async function viewCustomerUse(
  { clock, pages }: Pick<OperatorPorts, 'clock' | 'pages'>,
  account: string,
): Promise<CustomerUse> {
  const nowMs = clock.now();
  const wanted = utcDay(nowMs - (useDays - 1) * dayMs);
  const { days: readings, isAll } = await pages.days(account, wanted, sumsMax);
  const read = readings.flatMap((each) => ('row' in each ? [each.row] : []));
  const last = read.at(-1);
  // Where there are more than were read, the oldest day that was read may lack some.
  const cut = isAll || !last ? undefined : dayOf(last.key);
  const sums = read.filter(({ key }) => dayOf(key) !== cut);
  const calls = sums.filter((sum) => modelOf(sum) !== grantsModel);
  return {
    from: cut === undefined ? wanted : utcDay(Date.parse(cut) + dayMs),
    to: utcDay(nowMs),
    isWhole: isAll,
    sum: sumOf(sums),
    days: [...Map.groupBy(calls, ({ key }) => dayOf(key) ?? '')]
      .map(([day, all]) => ({ day, figures: sumOf(all) }))
      .toSorted((a, b) => compareCodeUnits(a.day, b.day)),
    models: [...Map.groupBy(calls, modelOf)]
      .map(([model, all]) => ({ model, figures: sumOf(all) }))
      .toSorted(byCharge),
    problems: readings.flatMap((each) => ('problem' in each ? [`${each.key}: ${each.problem}`] : [])),
  };
}

/** The period of a day's sum is `day#2026-11-22#model`. */
const modelOf = ({ key }: DailySum): string => key.period.slice('day#2026-11-22#'.length);

const sumOf = (all: readonly DailySum[]): DailyFigures =>
  all.reduce((sum, { figures }) => addFigures(sum, figures), noFigures);

const chargedOf = ({ figures }: { figures: DailyFigures }): bigint => figures.amounts.charged ?? 0n;

type OfModel = CustomerUse['models'][number];

function byCharge(a: OfModel, b: OfModel): number {
  const [one, other] = [chargedOf(a), chargedOf(b)];
  return one === other ? compareCodeUnits(a.model, b.model) : one > other ? -1 : 1;
}
