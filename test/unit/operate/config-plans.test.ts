import { describe, expect, it } from 'vitest';
import { listChannels } from '../../../shared/operate/channels/list-channels.ts';
import { checkTables } from '../../../shared/operate/config/check-rows.ts';
import { editByFile } from '../../../shared/operate/config/row-changes.ts';
import { awaitPublished, planRows, planSetRow, showRow } from '../../../shared/operate/config/write-rows.ts';
import { carryOutWrites } from '../../../shared/operate/rows.ts';
import { operatorRig } from '../../support/operator-rig.ts';

const channel = { id: 'a', endpoint: 'https://api.example.com/v1', models: ['m'], state: true };
const charge = { id: 1, type: 'token-billing', models: ['m'], input: 1, output: 2 };

const fileOf = (rows: object) => ({ name: 'rows.json', text: JSON.stringify(rows) });

describe('the plan to apply a file', () => {
  it('contains the writes as data, prices before channels, and writes nothing', async () => {
    const { ports, writes } = operatorRig({ rows: { channels: [{ ...channel, _note: 'mine' }] } });
    const file = fileOf({ channels: [{ ...channel, priority: 3 }], charges: [charge] });
    const plan = planRows(ports, await editByFile(ports, file, false));
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
      effect: ['Save 2 rows'],
      questions: ['Save these changes?'],
    });
    expect(writes).toEqual([]);
    expect(await carryOutWrites(ports, plan)).toHaveLength(2);
    expect(writes).toEqual(['create charges 1', 'update channels a']);
  });

  it('deletes channels before the prices of their models', async () => {
    const { ports } = operatorRig({ rows: { channels: [channel], charges: [charge] } });
    const plan = planRows(ports, await editByFile(ports, fileOf({ channels: [], charges: [] }), true));
    expect(plan.changes.map(({ kind, table }) => `${kind} ${table}`)).toEqual([
      'remove channels',
      'remove charges',
    ]);
    expect(plan.effect).toEqual(['Save 0 rows, delete 2']);
  });

  it('stops at the first row that somebody else changed, and reports its progress', async () => {
    const { ports, writes } = operatorRig({ overtaken: ['create channels a'] });
    const file = fileOf({ channels: [channel, { ...channel, id: 'b' }], charges: [charge] });
    const plan = planRows(ports, await editByFile(ports, file, false));
    await expect(carryOutWrites(ports, plan)).rejects.toThrow(
      'someone else changed channels a in the meantime; 1 of 3 rows are saved',
    );
    expect(writes).toEqual(['create charges 1', 'create channels a']);
  });
});

describe('a plan that closes the relay', () => {
  const closed = { name: 'relay_closed', value: true };
  const asks = {
    questions: ['Close the relay?'],
    warnings: expect.arrayContaining([
      expect.stringMatching(/all calls of all customers are refused until you open the relay again/),
    ]) as unknown,
  };

  it('asks for confirmation, whether it sets the setting or restores a version', async () => {
    const { ports } = operatorRig({ rows: { channels: [channel] } });
    const attributes = { value: true };
    const set = await planSetRow(ports, { table: 'settings', key: 'relay_closed', attributes });
    expect(set).toMatchObject(asks);
    const file = fileOf({ settings: [closed] });
    expect(planRows(ports, await editByFile(ports, file, false))).toMatchObject(asks);
    // The relay stays closed while the row is unreadable.
    const broken = { before: await ports.config.tables(), after: { ...(await ports.config.tables()) } };
    broken.after.settings = [{ ...closed, value: 'maybe' }];
    expect(planRows(ports, broken)).toMatchObject(asks);
  });

  it('asks as usual when the relay is already closed, opens, or is not affected', async () => {
    const { ports } = operatorRig({ rows: { settings: [closed] } });
    const set = async (key: string, value: unknown) =>
      (await planSetRow(ports, { table: 'settings', key, attributes: { value } })).questions;
    expect(await set('relay_closed', false)).toEqual(['Save these changes?']);
    expect(await set('contact', 'ops@example.com')).toEqual(['Save these changes?']);
  });
});

describe('the warnings of a row', () => {
  it('include facts learned from refusals, in the check, the row and the list', async () => {
    const lesson =
      'params.model_rules: m refused calls until this held; write {"m":{"sampling":"none"}}, so that it is not asked twice';
    const rows = { channels: [{ ...channel, _warning: lesson }], charges: [charge] };
    const { ports } = operatorRig({ published: [{}], rows });
    const { warnings } = await checkTables(ports);
    const shown = await showRow(ports, { table: 'channels', key: 'a' });
    const [listed] = await listChannels(ports);
    const checked = warnings.find(({ table }) => table === 'channels');
    for (const warning of [checked?.warning, shown.warning, listed?.warning])
      expect(warning).toContain(lesson);
  });

  it('name a secret that only another stack can read', async () => {
    const secret = ['env:KEY', 'ssm:/relay/other/channels/a'];
    const rows = { channels: [{ ...channel, secret }], charges: [charge] };
    const { warnings } = await checkTables(operatorRig({ published: [{}], rows }).ports);
    expect(warnings.find(({ table }) => table === 'channels')?.warning).toContain(
      `secret: ${secret[1]} cannot be read: stack relay can't read it`,
    );
  });

  it('are not taken from a mark when the row has become invalid', async () => {
    const row = { ...channel, weight: 'heavy', _warning: 'secret: env:KEY cannot be read: it is empty' };
    const { ports } = operatorRig({ published: [{}], rows: { channels: [row] } });
    const { problems, warnings } = await checkTables(ports);
    expect(problems).toHaveLength(1);
    expect(warnings).toEqual([]);
  });
});

describe('the plan to set a row', () => {
  it('names the variable that a local stack needs, unless another row already names it', async () => {
    const { ports } = operatorRig({ rows: { channels: [{ ...channel, secret: 'env:OLD_KEY' }] } });
    const effectOf = async (secret: unknown, target = ports.target) => {
      const edit = { table: 'channels', key: 'b', attributes: { ...channel, id: 'b', secret } } as const;
      return (await planSetRow({ ...ports, target }, edit)).effect.slice(1);
    };
    expect(await effectOf(['env:NEW_KEY', 'env:OLD_KEY'])).toEqual([
      expect.stringContaining('RELAY_ENV_SECRETS=NEW_KEY'),
    ]);
    expect(await effectOf('env:OPENAI_API_KEY')).toEqual([]);
    expect(
      await effectOf('ssm:/relay/relay/channels/api.example.com/new', { ...ports.target, local: false }),
    ).toEqual([]);
  });
});

describe('the wait for a version', () => {
  it("reports problems with a row's variable that only the stack knows", async () => {
    const refused =
      'secret: found an env: reference to a variable that rows cannot read; start the stack with RELAY_ENV_SECRETS=HOME to allow it';
    const row = { ...channel, secret: 'env:HOME', _problem: refused };
    const { ports } = operatorRig({ published: [{}], rows: { channels: [row] } });
    const local = { ...ports, target: { ...ports.target, local: true } };
    await expect(ports.clock.run(awaitPublished(local, 30))).rejects.toThrow(`channels a: ${refused}`);
  });
});
