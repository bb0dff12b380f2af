/** A plot over time: data as JSON in the page for uPlot, and the same as a table for everybody else. */
import { raw } from 'hono/html';
import { html, type Markup } from '../../markup.ts';

export interface PlotOf {
  /** Unique on its page; letters and minus. */
  id: string;
  title: string;
  unit: string;
  /** Unix seconds, ascending. */
  times: readonly number[];
  series: readonly Series[];
  height?: number;
}

export function plot({ id, title, unit, times, series, height = 150 }: PlotOf): Markup {
  const data = JSON.stringify({ title, unit, height, times, series });
  return html`<figure class="plot" aria-labelledby="${id}-title">
    <figcaption id="${id}-title">${title} <span class="unit">${unit}</span></figcaption>
    <div class="drawing" data-plot="${id}"></div>
    <script type="application/json" id="${id}">
      ${jsonBlock(data)}
    </script>
    <details>
      <summary>Figures</summary>
      ${figuresOf(times, series, title)}
    </details>
  </figure>`;
}

/** A block of data ends at the first tag that closes it, whatever the quotes around it: no `<` may be left. */
const jsonBlock = (json: string): Markup =>
  raw(json.replaceAll('<', '\\u003c').replaceAll('>', '\\u003e').replaceAll('&', '\\u0026'));

export interface Series {
  label: string;
  values: readonly (number | null)[];
  kind?: 'bars' | 'line';
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
