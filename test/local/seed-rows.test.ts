import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { buildDemoRows, realChannelRow, buildVendorRows } from '../../infra/local/seed.ts';
import { AccountRow } from '../../shared/config/rows/account-row.ts';
import { ChannelRow } from '../../shared/config/rows/channel-row.ts';
import { ChargeRow } from '../../shared/config/rows/charge-row.ts';
import { GrantRow } from '../../shared/config/rows/grant-row.ts';
import { KeyRow } from '../../shared/config/rows/key-row.ts';
import { PlanRow } from '../../shared/config/rows/plan-row.ts';
import { SettingRow, settingTable } from '../../shared/config/setting-rows.ts';

const schemas = {
  accounts: AccountRow,
  channels: ChannelRow,
  charges: ChargeRow,
  grants: GrantRow,
  keys: KeyRow,
  plans: PlanRow,
  settings: SettingRow,
};
const rows = [
  ...buildDemoRows('http://127.0.0.1:1/v1', 'sk-abcdefghijkl'),
  ...buildVendorRows(() => 'http://127.0.0.1:2/v1'),
];

describe('the seeded rows', () => {
  it.each([...rows, realChannelRow])('are valid rows of the table $table', ({ table, row }) => {
    const schema = schemas[table as keyof typeof schemas];
    expect(schema.safeParse(row)).toMatchObject({ success: true });
  });

  it('contain only existing settings', () => {
    const settings = rows.filter(({ table }) => table === 'settings').map(({ row }) => row['name']);
    expect(Object.keys(settingTable)).toEqual(expect.arrayContaining(settings));
  });

  it('store the key as a hash and show only its ends', () => {
    const row = rows.find(({ table }) => table === 'keys')?.row;
    expect(row?.['hash']).toBe(createHash('sha256').update('sk-abcdefghijkl').digest('hex'));
    expect(row?.['hint']).toBe('sk-abcd...ijkl');
    expect(JSON.stringify(rows)).not.toContain('sk-abcdefghijkl');
  });
});
