import { describe, expect, it } from 'vitest';
import { planApply, planRollback, awaitPublished } from '../../../shared/operate/config/write-rows.ts';
import { diffConfig } from '../../../shared/operate/config/check-rows.ts';
import { carryOutWrites } from '../../../shared/operate/rows.ts';
import { operatorRig } from '../../support/operator-rig.ts';

const channel = { id: 'a', endpoint: 'https://api.example.com/v1', models: ['m'], state: true };
const charge = { id: 1, type: 'token-billing', models: ['m'], input: 1, output: 2 };
const pasted = 'sk-canary0123456789canary0123456789';
const bad = { ...channel, id: 'bad', secret: pasted };

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

  it('is refused when a row that it writes has a problem, and shows no value of that row', async () => {
    const { ports, writes } = operatorRig({});
    const plan = await planApply(ports, fileOf({ channels: [bad] }), { prune: false });
    expect(plan.refusal).toContain('1 of these rows have a problem');
    expect(plan.problems).toMatchObject([{ written: true, finding: { key: 'bad' } }]);
    expect(JSON.stringify([plan.differences, plan.problems])).not.toContain(pasted);
    await expect(carryOutWrites(ports, plan)).rejects.toThrow('nothing was written');
    expect(writes).toEqual([]);
  });

  it('is not refused for a problem that is in the tables already', async () => {
    const { ports } = operatorRig({ rows: { channels: [bad] } });
    const plan = await planApply(ports, fileOf({ channels: [channel] }), { prune: false });
    expect(plan.refusal).toBeUndefined();
    expect(plan.problems).toMatchObject([{ written: false }]);
  });

  it('has no question where there is nothing to write', async () => {
    const { ports } = operatorRig({ rows: { channels: [channel] } });
    const plan = await planApply(ports, fileOf({ channels: [channel] }), { prune: true });
    expect(plan).toMatchObject({ changes: [], questions: [] });
    expect(plan.effect[0]).toContain('nothing to write');
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

describe('the plan to roll back', () => {
  it('restores rows of the version, deletes rows that were published since, and keeps rows that never were', async () => {
    const { ports } = operatorRig({
      published: [{ channels: [channel] }, { channels: [channel, { ...channel, id: 'later' }] }],
      rows: { channels: [{ ...channel, priority: 9 }, { ...channel, id: 'later' }, bad] },
    });
    const plan = await planRollback(ports, 1);
    expect(plan.differences).toMatchObject([
      { key: 'a', change: 'changed' },
      { key: 'later', change: 'removed' },
    ]);
  });
});

describe('differences', () => {
  it('have the names of attributes alone where a row has a problem', async () => {
    const { ports } = operatorRig({ published: [{}], rows: { channels: [bad] } });
    const { differences, to } = await diffConfig(ports, { from: undefined, to: undefined });
    expect(to).toBe('the tables');
    expect(differences[0]?.attributes).toContainEqual({ name: 'secret' });
    expect(JSON.stringify(differences)).not.toContain(pasted);
  });
});

describe('the wait for a version', () => {
  it('ends with the version that was made of the rows of the tables', async () => {
    const { ports } = operatorRig({ published: [{ channels: [channel] }], rows: { channels: [channel] } });
    expect(await awaitPublished(ports, 30)).toMatchObject({ version: 1 });
    expect(await awaitPublished(ports, 0)).toBeUndefined();
  });

  it('fails after its time, and says that the rows are written', async () => {
    const { ports } = operatorRig({ published: [{}], rows: { channels: [channel] } });
    const startMs = ports.clock.now();
    await expect(ports.clock.run(awaitPublished(ports, 30))).rejects.toThrow('the rows are written, but');
    expect(ports.clock.now() - startMs).toBeGreaterThan(29_000);
  });

  it('says what the stack has against a variable that a row names, which it alone knows', async () => {
    const refused =
      'secret: found an env: reference to a variable that rows may not read; start the stack with RELAY_ENV_SECRETS=HOME to allow it';
    const row = { ...channel, secret: 'env:HOME', _problem: refused };
    const { ports } = operatorRig({ published: [{}], rows: { channels: [row] } });
    const local = { ...ports, target: { ...ports.target, local: true } };
    await expect(ports.clock.run(awaitPublished(local, 30))).rejects.toThrow(`channels a: ${refused}`);
  });
});
