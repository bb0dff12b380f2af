/** What was used by day and model, as the relay sums it. */
import type { AccountDay, AccountDays } from '../../../shared/wire/public/account.ts';
import { byId, choiceById, element } from './elements.ts';
import { drawPlot, type Series } from './plot.ts';
import { count, dayOf, plural, yuan } from './words.ts';

const namedMax = 6;
const others = 'all others';
const daySeconds = 24 * 60 * 60;

const measures = {
  charge: { of: (day: AccountDay) => day.charge, words: yuan },
  calls: { of: (day: AccountDay) => day.calls, words: count },
  tokens: { of: (day: AccountDay) => day.prompt_tokens + day.completion_tokens, words: count },
};
type Measure = keyof typeof measures;

export const daysChosen = (): number => Number(choiceById('days').value);

export class Usage {
  #shown: AccountDays | null = null;

  /** @param choose called when the customer wants other days */
  constructor(ended: AbortSignal, choose: () => void) {
    byId('days').addEventListener('change', choose, { signal: ended });
    byId('measure').addEventListener('change', () => this.#draw(), { signal: ended });
    const resized = new ResizeObserver(() => this.#draw());
    resized.observe(byId('plot'));
    ended.addEventListener('abort', () => resized.disconnect());
  }

  show(days: AccountDays | null): void {
    this.#shown = days;
    this.#draw();
  }

  #draw(): void {
    const all = this.#shown?.data ?? [];
    const { of, words } = measures[choiceById('measure').value as Measure];
    const days = daysShown();
    const first = days[0] ?? 0;
    const used = all.filter(({ day }) => day >= first);
    const series = seriesOf(used, days, of);
    drawPlot(byId('plot'), { days, series, words });
    byId('by-model').replaceChildren(...tableRows(used, series));
    const calls = plural(total(used, measures.calls.of), 'call');
    const from = this.#shown?.from ?? first;
    byId('usage-state').textContent =
      from > first ? `${calls} since ${dayOf(from)}: so many models are shown for these days alone` : calls;
  }
}

/** The beginnings of UTC days, the first one first. */
function daysShown(): number[] {
  const today = Math.floor(Date.now() / 1000 / daySeconds) * daySeconds;
  const length = daysChosen();
  return Array.from({ length }, (_, at) => today - (length - 1 - at) * daySeconds);
}

function seriesOf(used: AccountDay[], days: number[], of: (day: AccountDay) => number): Series[] {
  const named = [...Map.groupBy(used, ({ model }) => model)]
    .map(([name, parts]) => ({ name, sum: total(parts, of) }))
    .toSorted((a, b) => b.sum - a.sum)
    .map(({ name }) => name);
  const shown = named.slice(0, namedMax);
  const names = named.length > namedMax ? [...shown, others] : shown;
  const series = names.map((name) => ({ name, values: days.map(() => 0) }));
  for (const each of used) {
    const found = series[shown.includes(each.model) ? shown.indexOf(each.model) : namedMax];
    if (found) found.values[days.indexOf(each.day)]! += of(each);
  }
  return series;
}

function tableRows(used: AccountDay[], series: Series[]): HTMLElement[] {
  return [...Map.groupBy(used, ({ model }) => model)]
    .map(([name, parts]) => ({ name, parts, charge: total(parts, measures.charge.of) }))
    .toSorted((a, b) => b.charge - a.charge)
    .map(({ name, parts, charge }) => {
      const at = series.findIndex((one) => one.name === name);
      const swatch = element('i', { className: `swatch c${at < 0 ? namedMax : at}` });
      const texts = [
        yuan(charge),
        count(total(parts, measures.calls.of)),
        count(total(parts, (day) => day.prompt_tokens)),
        count(total(parts, (day) => day.completion_tokens)),
      ];
      const head = element('th', { scope: 'row' }, [swatch, element('code', {}, [name])]);
      return element('tr', {}, [head, ...texts.map((text) => element('td', {}, [text]))]);
    });
}

const total = (used: AccountDay[], of: (day: AccountDay) => number): number =>
  used.reduce((sum, day) => sum + of(day), 0);
