/** Plots of the overview: calls, spend, time to first content. */
import { yuanNumber } from '../../../../../shared/billing/amount.ts';
import { firstContentWithin } from '../../../../../shared/operate/overview/first-content-time.ts';
import type { TrafficPoint } from '../../../../../shared/operate/overview/traffic-points.ts';
import { html, type Markup } from '../../layout/markup.ts';
import { plot } from '../../layout/plot.ts';

export function plotsOf(points: readonly TrafficPoint[]): Markup {
  const times = points.map(({ startMs }) => startMs / 1000);
  const counts = (name: 'calls' | 'failures'): number[] =>
    points.map(({ figures }) => figures.counts[name] ?? 0);
  const within = (share: number): (number | null)[] =>
    points.map(({ figures }) => firstContentWithin(figures, share) ?? null);
  const charged = points.map(({ figures }) => yuanNumber(figures.amounts.charged ?? 0n));
  return html`<div class="columns three">
    ${plot({
      id: 'calls',
      title: 'Calls',
      unit: 'ended in each step',
      times,
      series: [
        { label: 'calls', values: counts('calls'), kind: 'bars', tone: 'first' },
        { label: 'failed', values: counts('failures'), kind: 'bars', tone: 'bad' },
      ],
    })}
    ${plot({
      id: 'spend',
      title: 'Charged',
      unit: '¥',
      times,
      series: [{ label: 'charged', values: charged, kind: 'bars', tone: 'third' }],
    })}
    ${plot({
      id: 'first-content',
      title: 'Time to first content',
      unit: 'ms, upper bound',
      times,
      series: [
        { label: '50 % within', values: within(0.5), tone: 'first' },
        { label: '95 % within', values: within(0.95), tone: 'second' },
      ],
    })}
  </div>`;
}
