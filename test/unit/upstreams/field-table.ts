import { isDeepStrictEqual } from 'node:util';
import { CannotCarry, type Dialect, type RequestSettings } from '../../../shared/upstreams/dialect.ts';
import { convertCall } from '../../../shared/upstreams/called-channel.ts';
import type { CanonicalCall, ChatRequest } from '../../../shared/wire/canonical-call.ts';
import { isRecord } from '../../../shared/wire/json.ts';
import { settingsWith } from '../../support/dialect-parts.ts';

/** What becomes of each field of a call in each dialect, as the table of docs/upstreams.md writes it. */

export interface FieldCase {
  /** The first column of the table, without backticks. */
  field: string;
  /** What is added to the call. */
  more: Partial<ChatRequest>;
  /** The call without it; a plain question if absent. */
  base?: Partial<ChatRequest>;
  /** Fields that the relay does not know. */
  unknown?: Record<string, unknown>;
  form?: string;
  settings?: Partial<RequestSettings>;
}

const question: ChatRequest = {
  model: 'm',
  messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }],
  max_tokens: 500,
};

/** Fields that hold several others; of any other new object the name alone is shown. */
const holders = new Set(['text', 'reasoning', 'output_config', 'tools[].function']);

export function outcome(
  dialect: Dialect,
  { more, base, unknown = {}, form = 'chat', settings }: FieldCase,
): string {
  const without: ChatRequest = { ...question, ...base };
  const bodyOf = (request: ChatRequest, others: Record<string, unknown>) => {
    const call: CanonicalCall = { form, request, unknown: others };
    return convertCall(dialect, call, { ...settingsWith({ model: 'm', ...settings }), dropsUnknown: true });
  };
  try {
    const { body, dropped } = bodyOf({ ...without, ...more }, unknown);
    const changed = [...new Set(changes(bodyOf(without, {}).body, body, ''))].toSorted();
    const left = dropped.length > 0 ? ['dropped'] : [];
    return [...changed.map((path) => `\`${path}\``), ...left].join(', ') || 'as without it';
  } catch (error) {
    if (error instanceof CannotCarry) return 'refused';
    throw error;
  }
}

/** The paths at which two bodies differ. `[]` stands for any place of a list; a new item is shown with its type. */
function changes(before: unknown, after: unknown, path: string): string[] {
  if (isDeepStrictEqual(before, after)) return [];
  if (Array.isArray(after) && Array.isArray(before)) {
    if (after.length < before.length) return [path];
    return after.flatMap((item, index) =>
      index < before.length ? changes(before[index], item, `${path}[]`) : [newItem(item, `${path}[]`)],
    );
  }
  if (!isRecord(after) || !(isRecord(before) || path === '' || holders.has(path))) return [path];
  const earlier = isRecord(before) ? before : {};
  const names = new Set([...Object.keys(earlier), ...Object.keys(after)]);
  return [...names].flatMap((name) =>
    changes(earlier[name], after[name], path === '' ? name : `${path}.${name}`),
  );
}

function newItem(item: unknown, path: string): string {
  const { type, role } = isRecord(item) ? item : {};
  const kind = type ?? role;
  return typeof kind === 'string' ? `${path}: ${kind}` : path;
}

/** A table as rows of columns, by its first column. The header and the line below it are left out. */
export function tableRows(page: string, header: string): Map<string, string[]> {
  const lines = page.slice(page.indexOf(header)).split('\n');
  const end = lines.findIndex((line) => !line.startsWith('|'));
  return new Map(
    lines.slice(2, end).map((line) => {
      const [field = '', ...columns] = line
        .split('|')
        .slice(1, -1)
        .map((column) => column.trim());
      return [field.replaceAll('`', ''), columns];
    }),
  );
}
