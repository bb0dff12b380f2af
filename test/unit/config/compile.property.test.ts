import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { serializeConfiguration } from '../../../shared/config/compile-snapshot.ts';
import type { ConfigRows } from '../../../shared/config/rows/read-table.ts';
import { channel, compile } from './rows.ts';

/** Anything that DynamoDB's document client could return, and more. */
const junk = fc.anything({ withSet: true, withNullPrototype: true, withTypedArray: true, withBigInt: true });

const oneOfEach = (good: Record<string, unknown>) =>
  fc
    .dictionary(fc.oneof(fc.constantFrom(...Object.keys(good), '_note'), fc.string()), junk, { maxKeys: 3 })
    .map((spoilt): Record<string, unknown> => Object.assign({}, good, spoilt));

const withOwnKeys = (rows: Record<string, unknown>[], key: string, name: (index: number) => unknown) =>
  rows.map((row, index) => ({ ...row, [key]: name(index) }));

it('compile never throws, whatever the tables contain', () => {
  const table = fc.array(junk, { maxLength: 5 });
  fc.assert(
    fc.property(table, table, table, table, fc.boolean(), (channels, charges, plans, settings, local) => {
      const { snapshot, results } = compile({ channels, charges, plans, settings }, { local });
      expect(results).toHaveLength(channels.length + charges.length + plans.length + settings.length);
      expect(() => JSON.stringify(snapshot)).not.toThrow();
    }),
    { numRuns: 100 },
  );
});

it('compile serves exactly the rows without a problem', () => {
  const charge = { id: 1, type: 'token-billing', models: ['m'], input: 1, output: 2, anonymous: false };
  fc.assert(
    fc.property(
      fc.array(oneOfEach(channel({ priority: 1, weight: 1, mapper: {}, params: {}, secret: 'env:A' })), {
        maxLength: 6,
      }),
      fc.array(oneOfEach(charge), { maxLength: 6 }),
      (someChannels, someCharges) => {
        const channels = withOwnKeys(someChannels, 'id', (index) => `c${index}`);
        const charges = withOwnKeys(someCharges, 'id', (index) => index);
        const { snapshot, results } = compile({ channels, charges }, { local: true });
        const fine = (name: string) =>
          results.filter((result) => result.table === name && result.problem === undefined);
        const servable = fine('channels').filter(
          ({ key }) => String(channels.find(({ id }) => id === key)?.['state']) === 'true',
        );
        const served = new Set<unknown>(snapshot.channels.map((row) => row.id));
        expect(served).toEqual(new Set(servable.map(({ key }) => key)));
        expect(snapshot.charges.map((row) => row.id)).toEqual(fine('charges').map(({ key }) => key));
      },
    ),
    { numRuns: 100 },
  );
});

it('compile returns the same for the rows that it kept, and for its own snapshot', () => {
  const table = fc.array(junk, { maxLength: 4 });
  fc.assert(
    fc.property(
      fc.array(oneOfEach(channel({ models: new Set(['b', 'a']), params: {} })), { maxLength: 4 }),
      table,
      (someChannels, others) => {
        const channels = withOwnKeys(someChannels, 'id', (index) => `c${index}`);
        const raw = { channels, charges: others, settings: [{ name: 'limits', value: {} }, ...others] };
        const first = compile(raw);
        const rows = JSON.parse(JSON.stringify(first.rows)) as ConfigRows;
        const content = serializeConfiguration(first.snapshot, first.rows);
        const fromKept = compile(rows);
        // Prices that could not be read are not part of the kept rows.
        const { unreadPrices: _unread, ...readable } = first.snapshot;
        expect(serializeConfiguration(fromKept.snapshot, fromKept.rows)).toBe(
          serializeConfiguration(readable, first.rows),
        );
        const again = compile(raw, { earlier: rows });
        expect(serializeConfiguration(again.snapshot, again.rows)).toBe(content);
      },
    ),
    { numRuns: 100 },
  );
});
