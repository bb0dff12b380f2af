/** The margin of sums: what was charged less what was paid, of the calls whose cost is known. */
import type { DailyFigures } from '../../../../shared/billing/daily/daily-figures.ts';
import { marginOf } from '../../../../shared/operate/report/margin-of.ts';
import { percent, yuan, yuanText } from './figures.ts';
import { html, type Content } from './markup.ts';

export function margin(figures: DailyFigures): Content {
  const { earned } = marginOf(figures);
  if (earned === undefined)
    return html`<span class="soft" title="No channel that served it says its cost">unknown</span>`;
  const charged = figures.amounts.bought_charged ?? 0n;
  return html`<span title="${percent(earned, charged)} of what was charged">${yuan(earned)}</span>`;
}

export function marginText(figures: DailyFigures): string {
  const { earned } = marginOf(figures);
  return earned === undefined ? 'margin unknown: no cost' : `margin ${yuanText(earned)} ¥`;
}
