/** A report as JSON: amounts are decimal texts of yuan, exact. */
import { formatYuan } from '../../billing/amount.ts';
import type { DailyFigures } from '../../billing/daily/daily-figures.ts';
import { isoTime } from '../../wire/iso-time.ts';
import { marginOf } from './margin-of.ts';
import type { ReportView } from './report-view.ts';

export function reportJson(view: ReportView): object {
  const { stack, madeMs, period, whole, before, days, models, channels, nearEmpty, marks, problems } = view;
  return {
    stack,
    made: isoTime(madeMs),
    from: period.from,
    to: period.to,
    is_running: period.isRunning,
    whole: figuresJson(whole),
    before: { ...period.before, ...figuresJson(before) },
    days: days.map(({ name, figures }) => Object.assign({ day: name }, figuresJson(figures))),
    models: models.map(({ name, figures }) => Object.assign({ model: name }, figuresJson(figures))),
    channels: channels.map(({ name, figures, medianMs, slowMs }) =>
      Object.assign({ channel: name }, figuresJson(figures), {
        first_content_p50_ms: finite(medianMs),
        first_content_p95_ms: finite(slowMs),
      }),
    ),
    near_empty: nearEmpty.map(({ account, available, perDay, daysLeft }) => ({
      account,
      available: formatYuan(available),
      per_day: formatYuan(perDay),
      days_left: Math.round(daysLeft * 10) / 10,
    })),
    marks,
    problems,
  };
}

function figuresJson(figures: DailyFigures): object {
  const { counts, amounts } = figures;
  const { earned, bought, knownCalls } = marginOf(figures);
  return {
    calls: counts.calls ?? 0,
    failures: counts.failures ?? 0,
    plan_calls: counts.plan_calls ?? 0,
    official_calls: counts.official_calls ?? 0,
    prompt_tokens: counts.prompt_tokens ?? 0,
    completion_tokens: counts.completion_tokens ?? 0,
    charged: formatYuan(amounts.charged ?? 0n),
    bought: formatYuan(bought),
    bought_calls: knownCalls,
    margin: earned === undefined ? null : formatYuan(earned),
  };
}

/** The last bucket has no bound: `more`. */
const finite = (bound: number | undefined): number | string | null =>
  bound === Infinity ? 'more' : (bound ?? null);
