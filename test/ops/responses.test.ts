import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { idAt, LedgerRig, yuan } from './ledger-rig.ts';
import { storedRows } from './stored-rows.ts';

const first = idAt('2026-11-10T12:00:00Z', 'frst');
const running = idAt('2026-11-10T13:00:00Z', 'rnng');
const expired = idAt('2026-11-10T14:00:00Z', 'ended');
const free = idAt('2026-11-10T15:00:00Z', 'free');
const unknown = idAt('2026-11-10T16:00:00Z', 'nknwn');
const secrets = /secret question|secret answer|sealed/;

let rig: LedgerRig;
beforeAll(async () => {
  rig = await LedgerRig.start();
  await rig.put('accounts', { account: 'acme' }, { account: 'empty' });
  await rig.grant('acme', '10');
  const charge = { charge: yuan('0.001'), prompt_tokens: 1, completion_tokens: 1 };
  for (const id of [first, running, expired]) await rig.call('acme', id, charge);
  await rig.put('responses', ...(await storedRows(first, { ancestors: [`resp-${free}`], turn: 2 })));
  const background = { streamed: true, until: 1_795_000_060 };
  await rig.put('responses', ...(await storedRows(running, { status: 'in_progress', background })));
  await rig.put('responses', ...(await storedRows(expired, { expires: 1 })));
  await rig.put('responses', ...(await storedRows(free)));
  await rig.put('responses', { account: 'acme', id: 'resp-gone', status: 'removed', expires: 9_000_000_000 });
  await rig.put('responses', { account: 'acme', id: 'resp-abc#result', bytes: 40, expires: 9_000_000_000 });
  await rig.put('responses', { account: 'acme', id: `resp-${free}#b#x#1`, expires: 9_000_000_000 });
});
afterAll(async () => rig.stop());

const reads = async (): Promise<Record<string, unknown>[]> =>
  (await (await rig.ports()).tables.scan('runtime')).filter(({ id }) =>
    String(id).startsWith('content-read#'),
  );

describe('response show', () => {
  it.each([`resp-${first}`, first])('shows the status and the account of %s, but no content', async (id) => {
    const { code, output, errors } = await rig.ops(`response show ${id}`);
    expect({ code, errors }).toMatchObject({ code: 0 });
    expect(output).toMatch(/account +acme/);
    expect(output).toMatch(/status +completed/);
    expect(output).toContain(`2, after resp-${free}`);
    expect(output + errors).not.toMatch(secrets);
    expect(await reads()).toEqual([]);
  });

  it('finds one without a ledger row if the account is given', async () => {
    expect((await rig.ops(`response show ${free}`)).code).toBe(1);
    expect((await rig.ops(`response show ${free} --account acme`)).code).toBe(0);
    expect((await rig.ops(`response show ${free} --account empty`)).code).toBe(1);
  });

  it.each([
    [[expired], 1, 'was deleted or has expired'],
    [[unknown], 1, 'no ledger row'],
    [['resp-1'], 2, '26 characters'],
    [[`${first}#1`], 2, '26 characters'],
    [[first, '--content'], 2, '--content requires --reason, because reading content is recorded'],
    [
      [first, '--content', '--reason', ' '],
      2,
      '--content requires --reason, because reading content is recorded',
    ],
  ])('refuses %j', async (words, exit, message) => {
    const { code, errors, output } = await rig.ops(['response', 'show', ...words]);
    expect(code).toBe(exit);
    expect(errors).toContain(message);
    expect(output + errors).not.toMatch(secrets);
    expect(await reads()).toEqual([]);
  });

  it('shows the content with a reason, and records the reader and the reason', async () => {
    const words = ['response', 'show', first, '--content', '--reason', 'ticket 4711'];
    const { code, output, errors } = await rig.ops(words);
    expect(code).toBe(0);
    expect(output).toContain('a secret question');
    expect(output).toContain('a secret answer');
    expect(output).not.toContain('a sealed state');
    const [read, ...others] = await reads();
    expect(others).toEqual([]);
    expect(read).toMatchObject({
      account: 'acme',
      response: `resp-${first}`,
      by: 'local',
      reason: 'ticket 4711',
    });
    expect(errors).toContain(String(read?.['id']));
    expect(JSON.stringify(read)).not.toMatch(secrets);
    // Expires after more than a year.
    expect(Number(read?.['expires'])).toBeGreaterThan(Date.now() / 1000 + 365 * 24 * 60 * 60);
  });

  it('shows no content if the record cannot be written', async () => {
    const { planShowContent, carryOutShowContent } = await import('../../shared/operate/responses.ts');
    const ports = await rig.ports();
    const head = await ports.responses.head('acme', `resp-${first}`);
    const failing = {
      ...ports,
      tables: { ...ports.tables, write: () => Promise.reject(new Error('down')) },
      responses: { ...ports.responses, read: () => Promise.reject(new Error('was read')) },
    };
    if (!head) throw new Error('no head');
    const plan = await planShowContent(failing, head, 'ticket');
    await expect(carryOutShowContent(failing, plan)).rejects.toThrow('down');
  });
});

describe('response total', () => {
  it('counts stored responses and their bytes, without expired ones', async () => {
    const { code, output } = await rig.ops('response total acme --json');
    expect(code).toBe(0);
    const view = JSON.parse(output);
    expect(view).toMatchObject({
      account: 'acme',
      sums: { responses: { count: 3 }, events: { count: 3 }, results: { count: 1, bytes: 40 } },
      expired: 2,
      lastExpires: 9_000_000_000,
    });
    const [whole] = await storedRows(first);
    expect(view.sums.responses.bytes).toBeGreaterThan(2 * Number(whole?.['bytes']));
    expect(output).not.toMatch(secrets);
  });

  it('prints them as text, and reports an account without responses', async () => {
    const { output, errors } = await rig.ops('response total acme');
    expect(output).toMatch(/responses +3, \d+ bytes/);
    expect(errors).toContain('2 expired items');
    const empty = await rig.ops('response total empty');
    expect(empty.output).toMatch(/responses +0, 0 bytes/);
    expect((await rig.ops('response total nobody')).code).toBe(2);
  });
});

describe('response delete', () => {
  it('describes the deletion, and does nothing with --dry-run', async () => {
    const { code, output } = await rig.ops(`response delete ${running} --dry-run`);
    expect(code).toBe(0);
    expect(output).toContain('Stop its run and charge what it used');
    expect(output).toContain('nothing was written');
    expect(await rig.row('responses', { account: 'acme', id: `resp-${running}` })).toBeDefined();
  });

  it('deletes all its items, and no longer finds it', async () => {
    const run = await rig.ops(`response delete ${running} --yes`);
    expect(run).toMatchObject({ code: 0 });
    expect(run.output).toContain(`Deleted resp-${running}`);
    for (const id of [`resp-${running}`, `resp-${running}#e#0000000000000000`])
      expect(await rig.row('responses', { account: 'acme', id })).toBeUndefined();
    expect((await rig.ops(`response delete ${running} --yes`)).code).toBe(1);
    expect(await rig.row('responses', { account: 'acme', id: `resp-${first}` })).toBeDefined();
  });
});
