/** Shows the account's ledger page by page, and downloads all of it as CSV. */
import type { UsageEntry, UsageList } from '../../../shared/wire/public-api.ts';
import {
  findButton,
  byId,
  codeOf,
  createNode,
  findInput,
  say,
  formatTime,
  formatYuan,
  formatYuanColumn,
} from './elements.ts';
import { t } from './language.ts';
import { reportProgress, describeError, type RelayClient } from './relay-client.ts';

const pageRows = 20;
/** A browser that holds more rows becomes slow. */
const fileRowsMax = 100_000;

export const buildUsagePath = (limit: number, cursor: string | null, selected = ''): string =>
  // The relay hands cursors out escaped.
  `/v1/account/usage?limit=${limit}${cursor === null ? '' : `&cursor=${cursor}`}${selected}`;

/** The filters as a part of a query. */
const readSelection = (): string =>
  Object.entries({ end_user: findInput('of-user').value.trim(), tag: findInput('of-tag').value.trim() })
    .map(([name, value]) => (value === '' ? '' : `&${name}=${encodeURIComponent(value)}`))
    .join('');

export class Ledger {
  readonly #client: RelayClient;
  /** The start of each page that was shown, the current one last. */
  #pages: (string | null)[] = [null];
  #next: string | null = null;
  #saving: AbortController | undefined;

  constructor(client: RelayClient) {
    this.#client = client;
    const here = { signal: client.ended };
    byId('older').addEventListener('click', () => void this.#turn([...this.#pages, this.#next]), here);
    byId('newer').addEventListener('click', () => void this.#turn(this.#pages.slice(0, -1)), here);
    byId('save').addEventListener('click', () => void this.#save(), here);
    for (const id of ['of-user', 'of-tag'])
      byId(id).addEventListener('change', () => void this.#turn([null]), here);
  }

  /** The page that was shown before, or the first one. */
  show(): Promise<void> {
    return this.#turn(this.#pages);
  }

  async #turn(pages: (string | null)[]): Promise<void> {
    await reportProgress('ledger-state', async () => {
      const selected = readSelection();
      const list = await this.#client.json<UsageList>(
        buildUsagePath(pageRows, pages.at(-1) ?? null, selected),
      );
      this.#pages = pages;
      this.#next = list.next_cursor;
      const written = formatYuanColumn(list.data.map(({ amount, charge }) => amount ?? charge));
      byId('rows').replaceChildren(...list.data.map((entry) => createRow(entry, written)));
      return describePage(list, pages.length, selected !== '');
    });
    findButton('newer').disabled = this.#pages.length < 2;
    findButton('older').disabled = this.#next === null;
  }

  /** Reads page by page; the same button stops it, without a file. */
  async #save(): Promise<void> {
    const control = byId('save');
    if (this.#saving) return this.#saving.abort();
    const saving = (this.#saving = new AbortController());
    control.textContent = t().stop;
    try {
      const rows = await this.#all(saving.signal, (read) => say('save-state', t().countRows(read)));
      if (rows) download(csvOf(rows), 'usage.csv');
      say('save-state', rows ? t().countRows(rows.length) : t().stopped);
    } catch (error) {
      say('save-state', describeError(error), true);
    }
    control.textContent = t().csv;
    this.#saving = undefined;
  }

  async #all(signal: AbortSignal, report: (read: number) => void): Promise<UsageEntry[] | undefined> {
    const rows: UsageEntry[] = [];
    const selected = readSelection();
    let cursor: string | null = null;
    do {
      const list: UsageList = await this.#client.json<UsageList>(buildUsagePath(100, cursor, selected));
      if (signal.aborted) return undefined;
      rows.push(...list.data);
      report(rows.length);
      cursor = list.next_cursor;
    } while (cursor !== null && rows.length < fileRowsMax);
    return rows;
  }
}

/** Adds the sum when rows are filtered. A filtered page may be empty and still be followed by others. */
function describePage({ data, has_more: hasMore }: UsageList, at: number, isSelected: boolean): string {
  if (!isSelected) return data.length === 0 ? t().noCalls : t().pageOf(at);
  const sum = data.reduce((all, { charge }) => all + charge, 0);
  return t().pageSum(at, data.length, formatYuan(sum), hasMore);
}

function createRow(entry: UsageEntry, written: typeof formatYuan): HTMLElement {
  const { id, created, kind, amount, reason } = entry;
  const isGrant = kind === 'grant';
  const isWrong = entry.end === 'failed';
  const texts = [
    formatTime(created),
    isGrant ? t().topUp(reason ?? '') : modelOf(entry),
    isGrant ? '' : tokensOf(entry),
    isGrant || entry.first_content_ms === null ? '' : `${(entry.first_content_ms / 1000).toFixed(1)} s`,
    isGrant ? '' : endOf(entry),
    isGrant
      ? `${amount !== null && amount < 0 ? '' : '+'}${written(amount ?? 0)}`
      : formatCharge(entry, written),
  ];
  const row = createNode(
    'tr',
    {},
    texts.map((text, at) =>
      createNode('td', { dir: 'auto', className: isWrong && at === 4 ? 'wrong' : '' }, [text]),
    ),
  );
  row.append(createNode('td', {}, [codeOf(id)]));
  return row;
}

/** A call covered by a plan says so, because it is not free. */
export const formatCharge = ({ charge, plan_slot: slot }: UsageEntry, written = formatYuan): string =>
  slot === null ? written(charge) : `${written(charge)}\n${t().onPlan}`;

function modelOf({ model, alias, end_user: endUser, tags }: UsageEntry): string {
  const name = alias === null ? (model ?? '') : t().askedAs(model ?? '', alias);
  const whom = [endUser ?? '', formatTags(tags)].filter((each) => each !== '').join(', ');
  return whom === '' ? name : `${name}\n${t().forWhom(whom)}`;
}

const formatTags = (tags: UsageEntry['tags']): string =>
  Object.entries(tags ?? {})
    .map((pair) => pair.join('='))
    .toSorted()
    .join(', ');

function tokensOf({
  prompt_tokens: input,
  completion_tokens: output,
  cached_tokens: cached,
}: UsageEntry): string {
  if (input === null && output === null) return '';
  return t().tokensOf(input ?? 0, output ?? 0) + (cached ? `\n${t().cachedOf(cached)}` : '');
}

const endOf = ({ kind, end, estimated }: UsageEntry): string =>
  t().endOf(end ?? kind) + (estimated ? t().estimated : '');

export function download(text: string, name: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: 'text/csv' }));
  createNode('a', { href: address, download: name }).click();
  // Later, because the browser may not have started to read.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

type Cell = string | number | boolean | null | undefined;

/** @param rows the cells of each, in the order of the columns */
export const formatCsv = (columns: readonly string[], rows: readonly (readonly Cell[])[]): string =>
  [columns, ...rows].map((row) => `${row.map(formatCell).join(',')}\r\n`).join('');

function formatCell(value: Cell): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number') return formatNumber(value);
  const text = String(value);
  // Spreadsheets run a text that begins with one of these as a formula.
  const safe = /^[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Never 1.5e-6, which some spreadsheets read as text. */
const formatNumber = (value: number): string =>
  String(value).includes('e') ? value.toFixed(12).replace(/\.?0+$/, '') : String(value);

function csvOf(entries: readonly UsageEntry[]): string {
  const rows = entries.map(rowCells);
  const names = Object.keys(rows[0] ?? {}) as (keyof ReturnType<typeof rowCells>)[];
  return formatCsv(
    names,
    rows.map((row) => names.map((name) => row[name])),
  );
}

function rowCells(entry: UsageEntry) {
  const { object: _, id, created, tags, ...others } = entry;
  return { id, created: new Date(created * 1000).toISOString(), ...others, tags: formatTags(tags) };
}
