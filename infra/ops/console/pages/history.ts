/** Shows the changes made through a hosted console, with person and result, one UTC day at a time. */
import type { HistoryGap, HistoryLine } from '../../../../shared/operate/hosted-console.ts';
import { usageFailure } from '../../../../shared/operate/plan.ts';
import { isoTime, dayMs } from '../../../../shared/wire/iso-time.ts';
import { html } from '../../markup.ts';
import { renderAge } from '../layout/figures.ts';
import { renderEmptyState, renderLead, type Page } from '../layout/frame.ts';
import { column, head, number, renderTable, renderWide } from '../layout/table.ts';
import type { Routes, Visit } from '../visit/visit.ts';

export function addHistoryPages(routes: Routes): void {
  routes.page('/history', renderHistory);
}

async function renderHistory({ ports, query, nowMs }: Visit): Promise<Page> {
  const day = query('day') || isoTime(nowMs).slice(0, 10);
  if (!/^\d{4}-\d\d-\d\d$/.test(day) || Number.isNaN(Date.parse(day)))
    throw usageFailure(`day: invalid day ${day}, use one such as 2026-11-27`);
  const lines = await ports.consoles.history(day, Number(query('before')) || undefined);
  const oldest = lines.at(-1)?.number ?? 1;
  const previous = isoTime(Date.parse(day) - dayMs).slice(0, 10);
  return {
    title: `History of ${day}`,
    body: html`${renderLead('Every change made through the hosted console. Changes from the command line or in the tables themselves are not listed; each row says who changed it last.')}
      ${renderTable(lines, {
        caption: 'Changes',
        empty: renderEmptyState('No changes', 'Nothing was saved through the hosted console on this day.'),
        columns: [
          head('When', ({ at }: HistoryLine | HistoryGap) =>
            at === undefined ? 'missing' : renderAge(Date.parse(at), nowMs),
          ),
          number('Number', (line) => line.number),
          column('Who', (line) => line.at !== undefined && `${line.by}, ${line.role}`),
          column('Change', (line) =>
            line.at === undefined
              ? 'Never started, or its entry was deleted'
              : renderWide([html`<strong>${line.title}</strong> `, line.effect.join('; ')]),
          ),
          column('Result', (line) =>
            line.at === undefined
              ? ''
              : renderWide(line.result?.join('; ') ?? 'none: still running, or interrupted'),
          ),
        ],
      })}
      <p>
        ${oldest > 1 && html`<a href="history?day=${day}&before=${oldest}">Older changes of this day</a> &nbsp; `}
        <a href="history?day=${previous}">Previous day (UTC)</a>
      </p>`,
  };
}
