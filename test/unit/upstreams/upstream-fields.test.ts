import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { loadDialect } from '../../../shared/upstreams/dialects/dialects.ts';
import { fieldCases } from './field-cases.ts';
import { outcome, tableRows } from './field-table.ts';

const page = readFileSync(new URL('../../../docs/upstreams.md', import.meta.url), 'utf8');
const names = ['chat', 'responses', 'messages'];
const dialects = await Promise.all(names.map(loadDialect));
const documented = tableRows(page, '| field ');

it('docs/upstreams.md has a row for each case, and no other', () => {
  expect([...documented.keys()].toSorted()).toEqual(fieldCases.map(({ field }) => field).toSorted());
});

it.each(fieldCases)('$field becomes in each dialect what docs/upstreams.md says', (each) => {
  expect(dialects.map((dialect) => outcome(dialect, each))).toEqual(documented.get(each.field));
});

it.each(fieldCases)(
  '$field is dropped only where that is allowed, and refused only where it is not',
  (each) => {
    const forbidden = each.law === 'kept' ? 'dropped' : 'refused';
    for (const dialect of dialects) expect(outcome(dialect, each)).not.toContain(forbidden);
  },
);
