import { expect, it } from 'vitest';
import { createFilter } from '../../infra/local/event-source-mapping.ts';

const filter = (...patterns: unknown[]) => createFilter(patterns.map((pattern) => JSON.stringify(pattern)));
const insert = { eventName: 'INSERT', dynamodb: { NewImage: { id: { S: 'grant#1' } } } };

it.each<[patterns: unknown[], passes: boolean]>([
  [[], true],
  [[{ eventName: ['INSERT', 'MODIFY'] }], true],
  [[{ eventName: ['REMOVE'] }], false],
  [[{ eventName: ['REMOVE'] }, { eventName: ['INSERT'] }], true],
  [[{ dynamodb: { NewImage: { id: { S: [{ prefix: 'grant#' }] } } } }], true],
  [[{ dynamodb: { OldImage: { id: { S: [{ prefix: 'grant#' }] } } } }], false],
])('the event filters %j let an insert pass: %s', (patterns, passes) => {
  expect(filter(...patterns)(insert)).toBe(passes);
});

it('an unknown operator aborts the start', () => {
  expect(() => filter({ a: [{ numeric: ['>', 0] }] })).toThrow('unknown operator numeric');
});
