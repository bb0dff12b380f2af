import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { carryOutGrant, planGrantAmount } from '../../shared/operate/customers/grants.ts';
import { planEditAccount } from '../../shared/operate/customers/edit-account.ts';
import { carryOutKey, planCreateKey } from '../../shared/operate/keys/edit-key.ts';
import { Failure } from '../../shared/operate/plan.ts';
import type { OperatorPorts, RowWrite } from '../../shared/operate/operator-ports.ts';
import { carryOutWrites } from '../../shared/operate/rows.ts';
import { LedgerRig } from './ledger-rig.ts';

let rig: LedgerRig;
let ports: OperatorPorts;
/** Ports that reject every write. */
let reading: OperatorPorts;
beforeAll(async () => {
  rig = await LedgerRig.start();
  ports = await rig.ports();
  const refuse = async (): Promise<never> => Promise.reject(new Error('a plan wrote'));
  const writes = { write: refuse, writeTogether: refuse };
  reading = {
    ...ports,
    tables: { ...ports.tables, ...writes },
    ledger: { ...ports.ledger, close: refuse },
    secrets: { ...ports.secrets, put: refuse },
  };
});
afterAll(async () => rig.stop());

describe('a plan only reads, describes its changes, and returns its result as data', () => {
  it('when it creates a key and its missing account', async () => {
    const plan = await planCreateKey(reading, { account: 'planned', attributes: { models: ['m'] } });
    expect(plan).toMatchObject({
      changes: [
        { table: 'accounts', row: { account: 'planned' } },
        { table: 'keys', row: { account: 'planned', models: ['m'], enabled: true } },
      ],
      effect: ['Create customer planned', 'Create a key for planned (models: m)'],
      questions: [],
    });
    const made = await carryOutKey(ports, plan);
    expect(made.made.map(({ table }) => table)).toEqual(['accounts', 'keys']);
    expect(plan).toMatchObject({ account: 'planned', rights: 'models: m' });
    expect(JSON.stringify(plan)).not.toContain(made.secretKey);
    expect((await planCreateKey(reading, { account: 'planned' })).changes).toHaveLength(1);
  });

  it('for an account, and only one of two concurrent plans is carried out', async () => {
    await rig.put('accounts', { account: 'sold', plan: { level: 1, since: '2026-11-01' } });
    const ended = { plan: undefined };
    const [one, two] = [
      await planEditAccount(reading, { account: 'sold', attributes: { plan: { level: 2 } } }),
      await planEditAccount(reading, { account: 'sold', attributes: ended }),
    ];
    await carryOutWrites(ports, one);
    await expect(carryOutWrites(ports, two)).rejects.toThrow(
      'someone else changed this row in the meantime: review it and try again',
    );
    expect(await rig.row('accounts', { account: 'sold' })).toMatchObject({
      plan: { level: 2, since: '2026-11-01' },
    });
    await carryOutWrites(ports, await planEditAccount(reading, { account: 'sold', attributes: ended }));
    expect(await rig.row('accounts', { account: 'sold' })).not.toHaveProperty('plan');
  });

  it('for a grant, and reports whether the result is unknown if the store stops answering', async () => {
    await rig.put('accounts', { account: 'unsure' });
    const plan = await planGrantAmount(reading, { account: 'unsure', amount: '7' });
    const silent = () => Promise.reject(new Failure('DynamoDB did not answer'));
    const unheard = {
      ...ports,
      tables: {
        ...ports.tables,
        write: async (write: RowWrite) => (await ports.tables.write(write), silent()),
      },
    };
    await expect(carryOutGrant(unheard, plan, 0)).rejects.toThrow('may or may not be written');
    expect(await rig.row('grants', { account: 'unsure', grant_id: plan.grantId })).toBeDefined();
    const unread = { ...ports, ledger: { ...ports.ledger, grants: () => failing } };
    const failing = { [Symbol.asyncIterator]: () => ({ next: silent }) };
    await expect(
      carryOutGrant(
        unread,
        await planGrantAmount(reading, { account: 'unsure', amount: '8', id: 'second' }),
        0,
      ),
    ).rejects.toThrow('DynamoDB did not answer; grant "second');
    const denied = {
      ...ports,
      tables: { ...ports.tables, write: () => Promise.reject(new Failure('not allowed', 3)) },
    };
    await expect(carryOutGrant(denied, plan, 0)).rejects.toThrow(/^not allowed$/);
  });
});
