import { describe, expect, it } from 'vitest';
import { planApply, awaitPublished } from '../../../shared/operate/config/write-rows.ts';
import { carryOutWrites } from '../../../shared/operate/rows.ts';
import { operatorRig } from '../../support/operator-rig.ts';

const channel = { id: 'a', endpoint: 'https://api.example.com/v1', models: ['m'], state: true };
const charge = { id: 1, type: 'token-billing', models: ['m'], input: 1, output: 2 };

const fileOf = (rows: object) => ({ name: 'rows.json', text: JSON.stringify(rows) });

describe('the plan to apply a file', () => {
  it('holds the writes as data, prices before channels, and writes nothing', async () => {
    const { ports, writes } = operatorRig({ rows: { channels: [{ ...channel, _note: 'mine' }] } });
    const file = fileOf({ channels: [{ ...channel, priority: 3 }], charges: [charge] });
    const plan = await planApply(ports, file, { prune: false });
    expect(plan).toMatchObject({
      changes: [
        { kind: 'create', table: 'charges', row: charge },
        {
          kind: 'update',
          table: 'channels',
          key: { id: 'a' },
          attributes: { priority: 3 },
          unchanged: { priority: undefined },
        },
      ],
      effect: ['2 rows to write.'],
      questions: ['Write this?'],
    });
    expect(writes).toEqual([]);
    expect(await carryOutWrites(ports, plan)).toHaveLength(2);
    expect(writes).toEqual(['create charges 1', 'update channels a']);
  });

  it('deletes channels before the prices of their models', async () => {
    const { ports } = operatorRig({ rows: { channels: [channel], charges: [charge] } });
    const plan = await planApply(ports, fileOf({ channels: [], charges: [] }), { prune: true });
    expect(plan.changes.map(({ kind, table }) => `${kind} ${table}`)).toEqual([
      'remove channels',
      'remove charges',
    ]);
    expect(plan.effect).toEqual(['0 rows to write, 2 to delete.']);
  });

  it('stops at the first row that was overtaken, and says how far it came', async () => {
    const { ports, writes } = operatorRig({ overtaken: ['create channels a'] });
    const file = fileOf({ channels: [channel, { ...channel, id: 'b' }], charges: [charge] });
    const plan = await planApply(ports, file, { prune: false });
    await expect(carryOutWrites(ports, plan)).rejects.toThrow(
      'channels a was changed by somebody else meanwhile; 1 of 3 rows are written',
    );
    expect(writes).toEqual(['create charges 1', 'create channels a']);
  });
});

describe('the wait for a version', () => {
  it('says what the stack has against a variable that a row names, which it alone knows', async () => {
    const refused =
      'secret: found an env: reference to a variable that rows may not read; start the stack with RELAY_ENV_SECRETS=HOME to allow it';
    const row = { ...channel, secret: 'env:HOME', _problem: refused };
    const { ports } = operatorRig({ published: [{}], rows: { channels: [row] } });
    const local = { ...ports, target: { ...ports.target, local: true } };
    await expect(ports.clock.run(awaitPublished(local, 30))).rejects.toThrow(`channels a: ${refused}`);
  });
});
