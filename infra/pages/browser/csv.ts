/** Rows of the ledger as CSV. */
import type { UsageEntry } from '../../../shared/wire/public/account.ts';

const columns = [
  'id',
  'created',
  'kind',
  'endpoint',
  'model',
  'alias',
  'key',
  'charge',
  'prompt_tokens',
  'completion_tokens',
  'cached_tokens',
  'cache_write_tokens',
  'cache_write_1h_tokens',
  'estimated',
  'flag',
  'first_content_ms',
  'end',
  'price',
  'plan_slot',
  'official',
  'cost',
  'amount',
  'reason',
] as const satisfies readonly (keyof UsageEntry)[];

export const csvOf = (entries: readonly UsageEntry[]): string =>
  [
    columns.join(','),
    ...entries.map((entry) => columns.map((name) => field(name, entry[name])).join(',')),
    '',
  ].join('\r\n');

function field(name: keyof UsageEntry, value: UsageEntry[keyof UsageEntry]): string {
  if (value === null) return '';
  if (name === 'created') return new Date(Number(value) * 1000).toISOString();
  if (typeof value === 'number') return plainNumber(value);
  const text = String(value);
  // Spreadsheets run a text that begins with one of these as a formula.
  const safe = /^[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Never 1.5e-6, which some spreadsheets read as text. */
const plainNumber = (value: number): string =>
  String(value).includes('e') ? value.toFixed(12).replace(/\.?0+$/, '') : String(value);
