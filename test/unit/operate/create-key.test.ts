import { expect, it } from 'vitest';
import { carryOutKey, planCreateKey } from '../../../shared/operate/keys/edit-key.ts';
import { operatorRig } from '../../support/operator-rig.ts';

const rows = { accounts: [{ account: 'acme', enabled: true }] };

it('a key is created and shown although the reply of the first attempt was lost', async () => {
  const { ports } = operatorRig({ rows });
  const plan = await planCreateKey(ports, { account: 'acme' });
  // The second attempt of the same write finds a row with this hash.
  const found = {
    ...ports,
    tables: { ...ports.tables, write: async () => false },
    random: { ...ports.random, secretKey: () => 'sk-again' },
  };
  const { secretKey } = await carryOutKey(found, plan);
  expect(secretKey).toBe('sk-again');
});
