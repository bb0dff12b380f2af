import { expect, it } from 'vitest';
import { momentOf, normalizeMoment, normalizeMoments } from '../../../shared/operate/moment.ts';

/** A Friday. */
const nowMs = Date.parse('2026-11-27T12:00:30Z');

it.each<[string, string | undefined, string | undefined]>([
  ['now', '2026-11-27T12:00:30Z', '2026-11-27T12:00:30Z'],
  ['15m', '2026-11-27T11:45:30Z', '2026-11-27T12:15:30Z'],
  ['2d', '2026-11-25T12:00:30Z', '2026-11-29T12:00:30Z'],
  ['1w', '2026-11-20T12:00:30Z', '2026-12-04T12:00:30Z'],
  ['11:05', '2026-11-27T11:05:00Z', '2026-11-28T11:05:00Z'],
  ['14:05', '2026-11-26T14:05:00Z', '2026-11-27T14:05:00Z'],
  ['yesterday 11:05', '2026-11-26T11:05:00Z', '2026-11-26T11:05:00Z'],
  ['Tomorrow  14:05', '2026-11-28T14:05:00Z', '2026-11-28T14:05:00Z'],
  ['today', '2026-11-27T00:00:00Z', '2026-11-27T00:00:00Z'],
  ['monday', '2026-11-23T00:00:00Z', '2026-11-30T00:00:00Z'],
  ['next monday', '2026-11-30T00:00:00Z', '2026-11-30T00:00:00Z'],
  ['last friday 09:00', '2026-11-20T09:00:00Z', '2026-11-20T09:00:00Z'],
  ['friday', '2026-11-20T00:00:00Z', '2026-12-04T00:00:00Z'],
  ['2026-11-22', '2026-11-22T00:00:00Z', '2026-11-22T00:00:00Z'],
  ['2026-11-22T14:00', '2026-11-22T14:00:00Z', '2026-11-22T14:00:00Z'],
  ['2026-11-22T14:00:00+08:00', '2026-11-22T06:00:00Z', '2026-11-22T06:00:00Z'],
  ...['soon', '25:00', 'yesterday 25:00', 'next week', '2026-02-30', '-1', '', '2h 14:05'].map(
    (none): [string, undefined, undefined] => [none, undefined, undefined],
  ),
])('reads %j as %s before now, as %s after it', (written, past, future) => {
  expect(momentOf(written, nowMs, 'past')).toBe(past && Date.parse(past));
  expect(momentOf(written, nowMs, 'future')).toBe(future && Date.parse(future));
});

it('times are stored as ISO 8601 at any depth, and ISO times stay unchanged', () => {
  const value = { from: 'next monday', since: '2d', until: '2027-01-01T00:00:00+08:00', text: 'tomorrow' };
  const params = { set: { since: '2d' } };
  expect(normalizeMoments({ value: [value], params, models: new Set(['m']) }, nowMs)).toEqual({
    value: [
      {
        from: '2026-11-30T00:00:00Z',
        since: '2026-11-25T12:00:30Z',
        until: '2027-01-01T00:00:00+08:00',
        text: 'tomorrow',
      },
    ],
    params,
    models: new Set(['m']),
  });
  expect(normalizeMoment('', nowMs)).toBe('');
});

it('hours of a price, of a rule or of a cost are not times', () => {
  const windows = [{ name: 'peak', from: '09:00', to: '12:00', zone: 'UTC', factor: 2 }];
  const cost = { '*': { input: 1, output: 2, windows } };
  expect(normalizeMoments({ windows, cost }, nowMs)).toEqual({ windows, cost });
});

it('an invalid time is rejected with its place and the accepted forms', () => {
  expect(() => normalizeMoments({ value: [{ until: 'tomorow' }] }, nowMs)).toThrow(
    'value[0].until: invalid time "tomorow", expected a time such as 2h, 14:05, yesterday 14:05, next monday or 2026-',
  );
});
