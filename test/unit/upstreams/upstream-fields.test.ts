import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { loadDialect } from '../../../shared/upstreams/dialects/dialects.ts';
import { freeFields, keptFields } from './field-cases.ts';
import { outcome, tableRows } from './field-table.ts';

const page = readFileSync(new URL('../../../docs/upstreams.md', import.meta.url), 'utf8');
const names = ['chat', 'responses', 'messages'];
const dialects = await Promise.all(names.map(loadDialect));
const documented = tableRows(page, '| field ');
const all = [...keptFields, ...freeFields];

it('docs/upstreams.md has a row for each case, and no other', () => {
  expect([...documented.keys()].toSorted()).toEqual(all.map(({ field }) => field).toSorted());
});

it.each(all)('$field becomes in each dialect what docs/upstreams.md states', (each) => {
  expect(dialects.map((dialect) => outcome(dialect, each))).toEqual(documented.get(each.field));
});

it.each(keptFields)('$field is never dropped', (each) => {
  for (const dialect of dialects) expect(outcome(dialect, each)).not.toContain('dropped');
});

it.each(freeFields)('$field is never rejected', (each) => {
  for (const dialect of dialects) expect(outcome(dialect, each)).not.toContain('refused');
});
