import { expect, test } from 'vitest';
import { listAuthors, listChanges } from '../../../shared/config/compile-snapshot.ts';
import { emptyRows } from '../../../shared/config/rows/read-table.ts';

const publishedAt = Date.parse('2026-11-22T09:00:00Z') / 1000;
const channel = (id: string, weight: number, marks: object = {}) => ({ id, weight, ...marks });
const by = (name: string, at = '2026-11-22T09:05:00Z') => ({ _by: name, _at: at });

const authors = (raw: object[], before: object[]) =>
  listAuthors(
    {
      raw: { ...emptyRows, channels: raw },
      before: { ...emptyRows, channels: before },
      after: {
        ...emptyRows,
        channels: raw.map((row) =>
          Object.fromEntries(Object.entries(row).filter(([name]) => !name.startsWith('_'))),
        ),
      },
    },
    publishedAt,
  );

test('a version names the authors of its changed rows, each once and sorted, and nobody else', () => {
  const raw = [
    channel('a', 2, by('jane')),
    channel('b', 2, by('ann')),
    channel('c', 2, by('jane')),
    channel('same', 1, by('somebody')),
  ];
  expect(authors(raw, [channel('a', 1), channel('same', 1)])).toEqual(['ann', 'jane']);
});

test('an edit by another tool is not attributed to the previous author of the row', () => {
  expect(authors([channel('a', 2, by('jane', '2026-11-21T00:00:00Z'))], [channel('a', 1)])).toEqual([]);
  expect(authors([channel('a', 2)], [channel('a', 1)])).toEqual([]);
});

test('a version summarises its changed rows by attribute in one line, without values', () => {
  const [old, next] = [
    [channel('a', 1), channel('gone', 1), channel('same', 1)],
    [channel('a', 2, { secret: 'ssm:/relay/x/y' }), channel('new', 1), channel('same', 1)],
  ];
  const changed = (before: object[] | undefined, after: object[]) =>
    listChanges({
      before: before && { ...emptyRows, channels: before },
      after: { ...emptyRows, channels: after },
    });
  expect(changed(old, next)).toEqual([
    'channel a: secret, weight',
    'channel gone is deleted',
    'channel new is new',
  ]);
  const many = Array.from({ length: 8 }, (_, index) => channel(`c${index}`, 1));
  expect(changed([], many).slice(-2)).toEqual(['channel c4 is new', '3 more']);
  expect(changed(undefined, many)).toEqual([]);
});
