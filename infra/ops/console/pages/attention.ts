/**
 * Lists for the overview what needs an operator: one line for each kind, the kinds that cost money first, then the configuration. Also
 * renders all findings for the audit page.
 */
import { describeMark } from '../../../../shared/operate/channels/channel-health.ts';
import type { OverviewNow, OverviewToday } from '../../../../shared/operate/overview.ts';
import { formatCount } from '../../../../shared/operate/plan.ts';
import { markKinds } from '../../../../shared/relay/ports/alerts.ts';
import { shortenChannelId } from '../../../../shared/wire/ids.ts';
import { compareCodeUnits } from '../../../../shared/wire/json.ts';
import { html, nothing, type Content, type Markup } from '../../markup.ts';
import { renderYuan } from '../layout/figures.ts';
import { renderEmptyState, renderItems, renderNotice } from '../layout/frame.ts';
import { column, head, renderTable, renderWide } from '../layout/table.ts';
import { channelPathOf } from './channels.ts';

/** `names`: the rows that it is about. */
interface Concern {
  title: Content;
  names: readonly Content[];
  isGrave: boolean;
}

export function renderAttention(
  { marks, channels, findings }: Pick<OverviewNow, 'marks' | 'channels' | 'findings'>,
  { day, losing, failing }: Pick<OverviewToday, 'day' | 'losing' | 'failing'>,
): Markup {
  // A channel that was disabled meanwhile may still have a mark.
  const enabledIds = new Set(
    channels.flatMap(({ id, state }) => (state === 'on' ? [shortenChannelId(id)] : [])),
  );
  const shown = marks
    .filter(({ channel }) => enabledIds.has(channel))
    .toSorted((a, b) => compareCodeUnits(a.channel, b.channel));
  const marked = new Set(shown.flatMap(({ channel, mark }) => (mark === 'failing' ? [channel] : [])));
  const unmarked = failing.filter(({ channel }) => enabledIds.has(channel) && !marked.has(channel));
  const listFailing = (isBehind: boolean): Content[] =>
    unmarked
      .filter(({ isRescued }) => isRescued === isBehind)
      .map(({ channel, attempts }) => [
        linkChannel(channel),
        ` 100 % of ${formatCount(attempts, 'attempt')}`,
      ]);
  const [losses, ...configuration] = groupFindings(findings);
  const concerns: Concern[] = [
    {
      title: html`<a href="margins?by=channel&day=${day}">Lost money</a> today (UTC)`,
      names: losing.map(({ channel, earned }) => [linkChannel(channel), ' ', renderYuan(earned)]),
      isGrave: true,
    },
    ...(losses ? [losses] : []),
    ...markKinds.map((kind) => ({
      title: markTitles[kind],
      names: shown
        .filter(({ mark }) => mark === kind)
        .map((mark): Content => [linkChannel(mark.channel), ' ', describeMark(mark).replace(`${kind}: `, '')])
        .concat(kind === 'failing' ? listFailing(false) : []),
      isGrave: true,
    })),
    {
      // The channel's other secrets still work, so too few attempts fail for a mark.
      title: 'Rejected secret or unpaid account',
      names: channels
        .filter(({ state, rests }) => state === 'on' && rests.some(({ kind }) => kind === 'credentials'))
        .map(({ id }) => linkChannel(id)),
      isGrave: true,
    },
    { title: 'Failing, but failover still answers', names: listFailing(true), isGrave: true },
    ...configuration,
  ].filter(({ names }) => names.length > 0);
  if (concerns.length === 0) return nothing;
  return renderNotice(
    concerns.some(({ isGrave }) => isGrave) ? 'bad' : 'warning',
    html`${renderItems(concerns.map(renderConcern))}
    ${findings.length > 0 && html`<a href="audit">All ${formatCount(findings.length, 'configuration warning')}</a>`}`,
  );
}

const markTitles = {
  failing: 'Failing',
  slower: 'Slower than last week',
  costlier: 'More expensive than last week',
} satisfies Record<(typeof markKinds)[number], string>;

const linkChannel = (id: string): Markup => html`<a href="${channelPathOf(id)}">${id}</a>`;

const namesMax = 3;

const renderConcern = ({ title, names }: Concern): Content => [
  html`<strong>${title}</strong> (${names.length}): `,
  names.slice(0, namesMax).map((name, at) => [at > 0 && '; ', name]),
  names.length > namesMax && ` and ${names.length - namesMax} more`,
];

type Finding = OverviewNow['findings'][number];

/** Warnings of several kinds may stand in one row. */
const findingKinds: readonly (readonly [title: string, fits: (finding: Finding) => boolean])[] = [
  ['Sold below cost', ({ warning = '' }) => warning.includes('sold below cost')],
  ['Invalid rows', ({ problem }) => problem !== undefined],
  ['Models without a price', ({ warning = '' }) => warning.includes('no price for')],
  [
    'Models that no enabled channel serves',
    ({ warning = '' }) => warning.includes('no enabled channel serves'),
  ],
];

function groupFindings(findings: readonly Finding[]): Concern[] {
  const isOther = (finding: Finding): boolean => !findingKinds.some(([, fits]) => fits(finding));
  return [...findingKinds, ['Other warnings', isOther] as const].map(([title, fits], at) => {
    const found = findings.filter(fits);
    const isGrave = at < 2;
    const explain = ({ problem, warning }: Finding): Content =>
      isGrave && found.length === 1 && `: ${problem ?? warning}`;
    return { title, names: found.map((finding) => [linkRow(finding), explain(finding)]), isGrave };
  });
}

const linkRow = ({ table, key, problem, warning }: Finding): Markup =>
  table === 'plans'
    ? html`plans ${key}`
    : html`<a href="${table}/${encodeURIComponent(key)}" title="${problem ?? warning}">${table} ${key}</a>`;

export const renderFindings = (findings: OverviewNow['findings']): Markup =>
  renderTable(findings, {
    caption: 'Rows with an error or a warning',
    markOf: ({ problem }) => (problem === undefined ? 'warning' : 'bad'),
    empty: renderEmptyState(
      'All configuration rows are valid',
      'Problems of keys, customers and grants are shown on their pages.',
    ),
    columns: [
      head('Row', linkRow),
      column('Type', ({ problem }) => (problem === undefined ? 'warning' : 'error')),
      column('Message', ({ problem, warning }) => renderWide(problem ?? warning)),
    ],
  });
