/**
 * Lists the requests of a period from the log, also live, and a customer's charges from the ledger. Only the log has refused
 * calls. Reading it costs money on AWS, so the page states the price, and asks first if it is high.
 */
import { formatTags } from '../../../../shared/billing/ledger-row.ts';
import { parseYuan } from '../../../../shared/billing/money.ts';
import { momentOf, wantedMoment } from '../../../../shared/operate/moment.ts';
import type { LogSource } from '../../../../shared/operate/operator-ports.ts';
import { formatCount, formatInteger, Failure, usageFailure } from '../../../../shared/operate/plan.ts';
import {
  estimateBytes,
  formatLogCost,
  requestSearch,
  requestStatuses,
  viewRequests,
  estimateWatchBytes,
  watchRequests,
  type AskedRequests,
  type ListedRequest,
  type RequestPoint,
  type RequestStatus,
} from '../../../../shared/operate/requests/list-requests.ts';
import { showEndUser, readTags } from '../../../../shared/relay/call/attribution.ts';
import { InvalidRequest } from '../../../../shared/wire/invalid-request.ts';
import { hourMs, isoTime } from '../../../../shared/wire/iso-time.ts';
import { html, nothing, type Content, type Markup } from '../../markup.ts';
import { renderClockTime, formatMilliseconds, formatMinute, formatPercent } from '../layout/figures.ts';
import { parseText, type Field } from '../../fields/row-field.ts';
import { renderSearch } from '../layout/form.ts';
import { renderEmptyState, renderNotice, renderWarnings, type Page } from '../layout/frame.ts';
import { renderOutcomesPlot } from '../layout/plot.ts';
import {
  renderBoth,
  column,
  renderCut,
  head,
  money,
  number,
  renderPager,
  renderTable,
  renderRows,
  renderTabs,
  renderTiles,
  type TableInput,
} from '../layout/table.ts';
import { renderLiveBar } from '../visit/live.ts';
import {
  renderCustomerLink,
  customerPathOf,
  buildPath,
  type Routes,
  type Visit,
  type Watch,
} from '../visit/visit.ts';
import { channelPathOf } from './channels.ts';
import { requestLineOf, requestPathOf, renderStatus } from './request-page.ts';

export function addRequestListPages(routes: Routes): void {
  routes.live('/requests/live', watchList);
  routes.slowPage('/requests', readList, renderRequests);
  routes.page('/ledger', renderLedger);
}

const rowsAtOnce = 100;
/** A live page must not grow with a night of calls. */
const rowsWatched = 200;
/** Read without asking: half a cent. */
const bytesUnasked = 1e9;
/** Used if the size of the log is unknown. */
const unaskedMs = 6 * hourMs;

const spans = { '15m': '15 minutes', '1h': '1 hour', '6h': '6 hours', '24h': '24 hours', '7d': '7 days' };
const usualSpan = '1h';

/** Filters are parameters of the page's address. */
const filters: readonly Field[] = [
  {
    name: 'status',
    label: 'Status',
    kind: 'choice',
    choices: [['', 'all'], ...requestStatuses.map((each) => [each, each] as const)],
  },
  { name: 'account', label: 'Customer' },
  { name: 'model', label: 'Model' },
  { name: 'channel', label: 'Channel' },
  { name: 'key', label: 'Key', placeholder: 'sk-AbCd...wXyZ' },
  { name: 'end_user', label: 'End user' },
  { name: 'tags', label: 'Tags', placeholder: 'team=search' },
  { name: 'from', label: 'From', placeholder: usualSpan },
  { name: 'to', label: 'To', placeholder: 'now' },
];

const readFilters = ({ query }: Visit): Record<string, string> =>
  Object.fromEntries(filters.map(({ name }) => [name, query(name)]));

/** Throws a Failure that names the field. */
function readQuestion({ query, nowMs }: Visit): AskedRequests {
  const readMoment = (name: string, usual: string): number => {
    const written = query(name) || usual;
    const ms = written === '' ? nowMs : momentOf(written, nowMs, 'past');
    if (ms === undefined) throw usageFailure(`${name}: enter ${wantedMoment}`);
    return ms;
  };
  const status = parseText(query('status')) as RequestStatus | undefined;
  if (status !== undefined && !requestStatuses.includes(status))
    throw usageFailure(`status: choose one of ${requestStatuses.join(', ')}`);
  return {
    account: parseText(query('account')),
    model: parseText(query('model')),
    channel: parseText(query('channel')),
    key_hint: parseText(query('key')),
    end_user: showEndUser(query('end_user')),
    tags: tagsOf(query('tags')),
    status,
    fromMs: readMoment('from', usualSpan),
    toMs: readMoment('to', ''),
    limit: rowsAtOnce,
  };
}

function tagsOf(written: string): AskedRequests['tags'] {
  try {
    return Object.fromEntries(readTags(written, 'tags'));
  } catch (error) {
    throw error instanceof InvalidRequest ? usageFailure(error.message) : error;
  }
}

/** Reads the log, or returns the `bytes` to confirm first, or the `problem` that prevented it. */
async function readList(visit: Visit) {
  const { ports, query, nowMs } = visit;
  try {
    const asked = readQuestion(visit);
    const wanted = requestSearch(asked);
    // A local log costs nothing.
    const source = ports.target.local ? undefined : await ports.log.source();
    const bytes = source && estimateBytes(source, asked, nowMs);
    const isMuch =
      bytes === undefined
        ? source !== undefined && asked.toMs - asked.fromMs > unaskedMs
        : 2 * bytes > bytesUnasked;
    if (isMuch && query('read') !== 'yes') return { asked, bytes: bytes && 2 * bytes };
    return { asked, source, view: await viewRequests(ports, wanted) };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return { problem: error.message.replace(/^--/, '') };
  }
}

type FoundList = Awaited<ReturnType<typeof readList>>;
type ReadList = Required<Pick<FoundList, 'asked' | 'view'>> & Pick<FoundList, 'source'>;

async function renderRequests(visit: Visit, found: FoundList): Promise<Page> {
  const given = readFilters(visit);
  const { asked, view, problem } = found;
  const idField = { name: 'id', label: 'Request or response ID', placeholder: 'chatcmpl-01jd3k…' };
  return {
    title: 'Requests',
    actions: renderSearch({ action: 'requests/find', verb: 'Explain', fields: [idField] }),
    body: html`${renderSearch({ action: 'requests', verb: 'Show', fields: filters.map((field) => Object.assign({}, field, { value: given[field.name] })), isDense: true })}
    ${renderSources(given['account'] ?? '', 'requests')}
    ${renderTabs(
      'Time',
      Object.entries(spans).map(([from, words]) => [
        buildPath('requests', { ...given, from, to: '' }),
        words,
      ]),
      buildPath('requests', { ...given, from: given['from'] || usualSpan }),
    )}
    ${problem !== undefined && renderNotice('bad', problem)}
    ${asked && (view ? renderFoundList(visit, { ...found, asked, view }) : renderPriceQuestion(found.bytes, given))}`,
  };
}

/** The ledger keeps everything, but has no refused calls. */
const renderSources = (account: string, current: string): Markup =>
  account === ''
    ? nothing
    : renderTabs(
        'Source',
        [
          [buildPath('requests', { account }), 'All requests (log)'],
          [buildPath('ledger', { account }), 'Charges (ledger)'],
        ],
        buildPath(current, { account }),
      );

const renderPriceQuestion = (bytes: number | undefined, given: Readonly<Record<string, string>>): Markup =>
  renderNotice(
    'calm',
    html`<p>
        This period needs a large read of the log:
        ${bytes === undefined ? '' : 'about '}${formatLogCost(bytes)}. Daily totals are free: see
        <a href="./?hours=24">the overview</a> and statements.
      </p>
      <a class="button" href="${buildPath('requests', { ...given, read: 'yes' })}">Read log</a>`,
  );

function renderFoundList(visit: Visit, { asked, view, source }: ReadList): Markup {
  const { nowMs, ports } = visit;
  const given = readFilters(visit);
  const { requests, points, scannedBytes } = view;
  const total = totalOf(points);
  const read = ports.target.local ? '' : `; read ${formatLogCost(scannedBytes)} of the log`;
  return html`${given['to'] === '' && asked.toMs - asked.fromMs <= hourMs && renderWatchBar(visit, asked, source)}
    <div id="requests-summary">${renderSummary(points)}</div>
    ${renderTable(requests, {
      ...requestTable(nowMs),
      caption: 'Requests',
      empty: renderEmptyState(
        'No matching requests',
        'Choose a longer period or fewer filters. A request appears within seconds of its end, on AWS within two minutes.',
      ),
    })}
    ${renderPager(
      `${formatInteger(requests.length)} of ${formatInteger(total)}, newest first${read}`,
      requests.length < total && buildPath('requests', { ...given, to: findOlderEnd(requests, asked) }),
    )}`;
}

/** Log queries end at whole seconds, so requests of the last second are shown again unless all fall into it. */
function findOlderEnd(requests: readonly ListedRequest[], { toMs }: AskedRequests): string {
  const lastMs = Math.ceil((requests.at(-1)?.atMs ?? toMs) / 1000) * 1000;
  return isoTime(lastMs < toMs ? lastMs : toMs - 1000);
}

const countsOf = (points: readonly RequestPoint[]): number[] =>
  (['answered', 'refused', 'failed'] as const).map((name) =>
    points.reduce((sum, point) => sum + point[name], 0),
  );

const totalOf = (points: readonly RequestPoint[]): number =>
  countsOf(points).reduce((sum, count) => sum + count);

function renderSummary(points: readonly RequestPoint[]): Markup {
  const total = totalOf(points);
  const [, refused = 0, failed = 0] = countsOf(points);
  return html`<div class="columns beside">
    ${renderTiles([
      { name: 'Requests', value: formatInteger(total) },
      { name: 'Refused', value: formatInteger(refused), note: formatPercent(refused, total) },
      {
        name: 'Failed',
        value: formatInteger(failed),
        note: formatPercent(failed, total),
        mark: failed > 0 && 'bad',
      },
    ])}
    ${renderOutcomesPlot(
      points,
      points.map(({ startMs }) => formatMinute(startMs)),
    )}
  </div>`;
}

/** Starts by itself if that is free, else after a click, with the price beside it. */
function renderWatchBar(visit: Visit, asked: AskedRequests, source: LogSource | undefined): Markup {
  const { ports, query } = visit;
  const isFree = ports.target.local;
  return renderLiveBar(visit, {
    address: buildPath('requests/live', { live: 'on', ...readFilters(visit) }),
    isOn: query('live') === 'on' || (isFree && query('live') !== 'off'),
    rowsMax: rowsWatched,
    isPaid: !isFree,
    words: isFree
      ? ''
      : `Watching live reads about ${formatLogCost(source && estimateWatchBytes(ports, source, asked))} per hour.`,
  });
}

const watchList: Watch = (visit, sinceMs) => {
  const { ports } = visit;
  const watch = watchRequests(ports, readQuestion(visit), sinceMs);
  return {
    everyMs: watch.everyMs,
    async look() {
      const { requests, points, nowMs, scannedBytes } = await watch.look();
      const read = ports.target.local ? '' : `, ${formatLogCost(scannedBytes)} read so far`;
      return {
        nowMs,
        words: `${isoTime(nowMs).slice(11, 19)} UTC${read}`,
        fragments: [
          { id: 'requests-summary', markup: renderSummary(points) },
          { id: rowsId, rows: true, markup: renderRows(requests, requestTable(nowMs)) },
        ],
      };
    },
  };
};

const rowsId = 'requests-rows';

const requestTable = (nowMs: number): Pick<TableInput<ListedRequest>, 'columns' | 'markOf' | 'live'> => ({
  live: { id: rowsId, keyOf: ({ line }) => String(line.request_id) },
  markOf: ({ line: { outcome } }) =>
    outcome === 'refused' ? 'warning' : outcome === 'failed' || outcome === 'limited' ? 'bad' : undefined,
  columns: [
    head('Request', ({ atMs, line }) =>
      renderBoth(
        html`<a href="${requestPathOf(String(line.request_id))}?at=${atMs}" data-copy="${line.request_id}"
          ><code class="cut">${line.request_id}</code></a
        >`,
        renderCut([line.end_user, formatTags(line.tags)].filter(Boolean).join(', ')),
      ),
    ),
    column('Ended (UTC)', ({ atMs }) => renderClockTime(atMs, nowMs)),
    column('Status', ({ line }) => renderStatus(line)),
    column('Customer', ({ line: { account, key_hint: hint } }) =>
      renderBoth(account ? renderCustomerLink(account) : '–', hint),
    ),
    column('Model', ({ line: { model, alias, channel } }) =>
      renderBoth(renderModelName(model, alias), renderChannelLink(channel)),
    ),
    number('Duration', ({ line: { duration_ms: tookMs, FirstContentMs: firstMs } }) =>
      renderBoth(formatDuration(tookMs), firstMs !== undefined && `first ${formatDuration(firstMs)}`),
    ),
    number('Tokens in, out', ({ line }) =>
      renderBoth(formatTokens(line.prompt_tokens), formatTokens(line.completion_tokens)),
    ),
    money(
      'Charged',
      ({ line: { ChargeYuan: charge } }) => (charge === undefined ? undefined : parseYuan(charge.toFixed(9))),
      { decimals: 4 },
    ),
  ],
});

const renderChannelLink = (channel: string | undefined): Content =>
  channel && channel !== 'none' && html`<a href="${channelPathOf(channel)}">${channel}</a>`;

const formatDuration = (ms: number | undefined): string => (ms === undefined ? '–' : formatMilliseconds(ms));
const formatTokens = (count: number | undefined): string =>
  count === undefined ? '–' : formatInteger(count);

const renderModelName = (model: string | undefined, alias: string | undefined): Markup =>
  html`${model || '–'}${alias !== undefined && html` <span class="soft">via ${alias}</span>`}`;

async function renderLedger({ ports, query, nowMs }: Visit): Promise<Page> {
  const account = query('account');
  if (account === '') throw usageFailure('account: enter a name');
  const before = query('before');
  const { rows, next } = await ports.pages.requests(account, before || undefined, 50);
  const { live: _live, ...columns } = requestTable(nowMs);
  return {
    title: `Ledger of ${account}`,
    section: 'requests',
    above: [[customerPathOf(account), account]],
    body: html`${renderSources(account, 'ledger')}
    ${renderWarnings(rows.flatMap((each) => ('problem' in each ? [`${each.key}: ${each.problem}`] : [])))}
    ${renderTable(
      rows.flatMap((each) => ('row' in each && each.row.kind !== 'grant' ? [requestLineOf(each.row)] : [])),
      {
        ...columns,
        caption: 'Requests',
        empty: renderEmptyState(
          'No requests',
          'The ledger has no requests of this customer. Check the name.',
        ),
      },
    )}
    ${renderPager(`${formatCount(rows.length, 'request')}, newest first`, next && buildPath('ledger', { account, before: next }))}`,
  };
}
