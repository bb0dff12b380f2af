/** Searches requests, customers, keys, channels, models and settings at once. Reads the configuration and one page of accounts. */
import { listBadRows, findProblemsInTables, nameOf } from '../../../../shared/operate/config/row-changes.ts';
import { listRowModels } from '../../../../shared/config/rows/key-row.ts';
import { textOf } from '../../../../shared/config/rows/read-row.ts';
import type { ConfigRows } from '../../../../shared/config/rows/read-table.ts';
import { requestTimeMs } from '../../../../shared/wire/ids.ts';
import { html } from '../../markup.ts';
import { renderEmptyState, type Page } from '../layout/frame.ts';
import { column, head, renderPager, renderTable } from '../layout/table.ts';
import { buildPath, customerPathOf, type Routes, type Visit } from '../visit/visit.ts';
import { channelPathOf } from './channels.ts';
import { requestPathOf } from './request-page.ts';

export function addFindPages(routes: Routes): void {
  routes.page('/find', renderFound);
}

interface Hit {
  kind: string;
  name: string;
  path: string;
}

const hitsMax = 20;

async function renderFound(visit: Visit): Promise<Page> {
  const text = visit.query('q');
  const { hits, next } = text === '' ? { hits: [] } : await findHits(visit, text);
  return {
    title: text === '' ? 'Search' : `Search: ${text}`,
    section: '',
    body: html`${renderTable(hits, {
      caption: 'Search results',
      empty: renderEmptyState(
        next ? 'Nothing found so far' : 'Nothing found',
        'Search for a request ID, a key or its hint, or part of the name of a customer, channel, model or setting.',
      ),
      columns: [
        head('Name', ({ name, path }) => html`<a href="${path}">${name}</a>`),
        column('Kind', ({ kind }) => kind),
      ],
    })}
    ${next && renderPager('There are more customers', buildPath('find', { q: text, after: next }))}`,
  };
}

/** `next`: where a search of more customers begins. The one of this very name is found at once. */
async function findHits(
  { ports, query }: Visit,
  text: string,
): Promise<{ hits: Hit[]; next?: string | undefined }> {
  const id = text.replace(/^(?:chatcmpl-|resp[-_]|msg_)/, '');
  if (requestTimeMs(id) !== undefined)
    return { hits: [{ kind: 'Request', name: id, path: requestPathOf(id) }] };
  const isKey = /^sk-|^[0-9a-f]{8,64}$/i.test(text);
  const contains = { attribute: 'account', contains: text };
  const [rows, named, accounts] = await Promise.all([
    ports.config.tables(),
    ports.pages.rowsOf('accounts', [text]),
    ports.pages.rows({
      table: 'accounts',
      where: contains,
      after: query('after') || undefined,
      limit: hitsMax,
    }),
  ]);
  const bad = listBadRows(findProblemsInTables(rows, ports));
  const names = new Set([...named, ...accounts.rows].map((row) => textOf(row, 'account')));
  const hits = [
    ...(isKey ? [{ kind: 'Key', name: `${text.slice(0, 14)}…`, path: buildPath('keys', { text }) }] : []),
    ...[...names].map((name) => ({ kind: 'Customer', name, path: customerPathOf(name) })),
    ...findRows(rows, { text, bad }),
  ];
  return { hits: hits.slice(0, 4 * hitsMax), next: accounts.next };
}

function findRows(
  { channels, settings }: ConfigRows,
  { text, bad }: { text: string; bad: ReadonlySet<string> },
): Hit[] {
  const fits = (name: string): boolean => name.toLowerCase().includes(text.toLowerCase());
  const ids = channels.map((row) => textOf(row, 'id')).filter(fits);
  // In an invalid row any text may be a misplaced secret.
  const models = channels.flatMap((row) =>
    bad.has(nameOf({ table: 'channels', key: textOf(row, 'id') })) ? [] : listRowModels(row),
  );
  return [
    ...ids.map((id) => ({ kind: 'Channel', name: id, path: channelPathOf(id) })),
    ...[...new Set(models)].filter(fits).flatMap((model) => [
      { kind: 'Price', name: model, path: `charges/model/${encodeURIComponent(model)}` },
      { kind: 'Requests of the model', name: model, path: buildPath('requests', { model }) },
    ]),
    ...settings
      .map((row) => textOf(row, 'name'))
      .filter(fits)
      .map((name) => ({ kind: 'Setting', name, path: `settings/${encodeURIComponent(name)}` })),
  ];
}
