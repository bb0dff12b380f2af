/** A plot over time: data as JSON in the page for uPlot, and the same as a table for everybody else. */
import { raw } from 'hono/html';
import { html, type Markup } from './markup.ts';
import { figuresOf, type Series } from './plot-figures.ts';

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
