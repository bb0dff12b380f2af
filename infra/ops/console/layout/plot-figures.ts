/** The figures of a plot as a table: for who sees no picture. */
import { html, type Markup } from './markup.ts';

export interface Series {
  label: string;
  /** Absent: there is no point at that time. */
  values: readonly (number | null)[];
  kind?: 'bars' | 'line';
  /** The colour, by what it means. */
  tone?: 'first' | 'second' | 'third' | 'bad';
}

/** More points than a table of a page shows. */
const tableRowsMax = 24;

export function figuresOf(times: readonly number[], series: readonly Series[], title: string): Markup {
  const from = Math.max(0, times.length - tableRowsMax);
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${title}, figures">
    <table class="data">
      <thead>
        <tr>
          <th scope="col">Time (UTC)</th>
          ${series.map(({ label }) => html`<th scope="col" class="number">${label}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${times.slice(from).map(
          (time, at) =>
            html`<tr>
              <th scope="row">${new Date(time * 1000).toISOString().slice(0, 16).replace('T', ' ')}</th>
              ${series.map(({ values }) => html`<td class="number">${values[from + at] ?? '–'}</td>`)}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}
