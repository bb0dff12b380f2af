import { isDeepStrictEqual } from 'node:util';
import { CannotCarry, type Dialect, type RequestSettings } from '../../../shared/upstreams/dialect.ts';
import { convertCall } from '../../../shared/upstreams/called-channel.ts';
import type { CanonicalCall, ChatRequest } from '../../../shared/wire/canonical-call.ts';
import { isRecord } from '../../../shared/wire/json.ts';
import { settingsWith } from '../../support/dialect-parts.ts';

/** How each dialect handles each field of a call, as in the table of docs/upstreams.md. */

export interface FieldCase {
  /** The first column of the table, without backticks. */
  field: string;
  /** The fields added to the call. */
  more: Partial<ChatRequest>;
  /** The call without it; a plain question by default. */
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

/** Fields that contain others; for other new objects only the name is shown. */
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

/** The paths at which two bodies differ. `[]` stands for any list position; a new item is shown with its type. */
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

/** A table as rows of columns, by its first column, without the header and the line below it. */
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
