/** The tables of a report's page. */
import { nameOf, type Finding } from '../../../shared/operate/config/findings.ts';
import type { NearEmptyAccount } from '../../../shared/operate/report/accounts-near-empty.ts';
import type { ServedGroup } from '../../../shared/operate/report/group-served.ts';
import { marginOf } from '../../../shared/operate/report/margin-of.ts';
import type { ReportedChannel } from '../../../shared/operate/report/report-view.ts';
import { html, type Content, type Markup } from './markup.ts';
import { grouped, lastsFor, percent, seconds, yuanOrNone, yuanText } from './report-words.ts';

interface Row {
  name: string;
  values: Value[];
}

interface Value {
  content: Content;
  tone?: string;
}

/** Rows beyond these are counted: a page of 300 models is no report. */
const rowsMax = 31;

function table(columns: readonly string[], rows: readonly Row[], of: string): Markup {
  const [first, ...others] = columns;
  const more = rows.length - rowsMax;
  return html`<div class="scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">${first}</th>
            ${others.map((each) => html`<th scope="col" class="number">${each}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${rows.slice(0, rowsMax).map(
            ({ name, values }) =>
              html`<tr>
                <th scope="row">${name}</th>
                ${values.map(({ content, tone = '' }) => html`<td class="number ${tone}">${content}</td>`)}
              </tr> `,
          )}
        </tbody>
      </table>
    </div>
    ${more > 0 ? html`<p class="note">and ${grouped(more)} more ${of}: <code>report --json</code> has all</p>` : ''}`;
}

const plain = (content: Content): Value => ({ content });

/** In red from 5 % on. */
function failed({ figures: { counts } }: ServedGroup): Value {
  const [failures, calls] = [counts.failures ?? 0, counts.calls ?? 0];
  return {
    content: percent(failures, calls),
    ...(failures >= 0.05 * calls && failures > 0 && { tone: 'bad' }),
  };
}

const calls = ({ figures }: ServedGroup): Value => plain(grouped(figures.counts.calls ?? 0));

function margin({ figures }: ServedGroup): Value {
  const { earned } = marginOf(figures);
  return { content: yuanOrNone(earned), ...(earned !== undefined && earned < 0n && { tone: 'bad' }) };
}

export const servedTable = (first: string, groups: readonly ServedGroup[]): Markup =>
  table(
    [first, 'Calls', 'Failed', 'Charged', 'Bought', 'Margin'],
    groups.map((each) => ({
      name: each.name,
      values: [
        calls(each),
        failed(each),
        plain(yuanText(each.figures.amounts.charged ?? 0n)),
        plain(marginOf(each.figures).knownCalls === 0 ? '-' : yuanText(each.figures.amounts.bought ?? 0n)),
        margin(each),
      ],
    })),
    'rows',
  );

export const channelsTable = (channels: readonly ReportedChannel[]): Markup =>
  table(
    ['Channel', 'Calls', 'Failed', 'Half begin within', '95 % begin within', 'Charged', 'Margin'],
    channels.map((each) => ({
      name: each.name,
      values: [
        calls(each),
        failed(each),
        plain(seconds(each.medianMs)),
        plain(seconds(each.slowMs)),
        plain(yuanText(each.figures.amounts.charged ?? 0n)),
        margin(each),
      ],
    })),
    'channels',
  );

export const nearEmptyTable = (accounts: readonly NearEmptyAccount[]): Markup =>
  table(
    ['Account', 'Balance', 'Spends a day', 'Lasts'],
    accounts.map(({ account, available, perDay, daysLeft }) => ({
      name: account,
      values: [
        plain(yuanText(available)),
        plain(yuanText(perDay)),
        { content: lastsFor(daysLeft), ...(daysLeft < 1 && { tone: 'bad' }) },
      ],
    })),
    'accounts',
  );

export function marksTable(marks: readonly Finding[]): Markup {
  const more = marks.length - rowsMax;
  return html`<div class="scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">Row</th>
            <th scope="col">Mark</th>
          </tr>
        </thead>
        <tbody>
          ${marks.slice(0, rowsMax).map(
            (mark) =>
              html`<tr>
                <th scope="row">${nameOf(mark)}</th>
                <td class="words ${mark.problem === undefined ? 'warning' : 'bad'}">
                  ${mark.problem ?? mark.warning}
                </td>
              </tr> `,
          )}
        </tbody>
      </table>
    </div>
    ${more > 0 ? html`<p class="note">and ${grouped(more)} more: <code>check</code> has all</p>` : ''}`;
}
