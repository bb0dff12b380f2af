import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LedgerRig, idAt, yuan } from './ledger-rig.ts';

const settled = idAt('2026-11-10T10:00:00Z');
const covered = idAt('2026-11-10T11:00:00Z');
const expired = idAt('2026-11-11T10:00:00Z');
const official = idAt('2026-11-11T11:00:00Z');
const released = idAt('2026-11-11T11:30:00Z');
const open = idAt('2026-11-11T11:40:00Z');

let rig: LedgerRig;
beforeAll(async () => {
  rig = await LedgerRig.start();
  await rig.grant('acme', '100');
  await rig.grant('other', '1');
  const tokens = { prompt_tokens: 12, completion_tokens: 40 };
  const cache = { cached_tokens: 7, cache_write_tokens: 3, cache_write_1h_tokens: 2 };
  const serving = {
    channel: 'openai',
    upstream_model: 'm-2026',
    first_content_ms: 812,
    bought: yuan('0.002'),
  };
  const whom = { end_user: 'alice', tags: { team: 'search', env: 'prod' } };
  const settle = {
    ...whom,
    charge: yuan('0.003096'),
    ...tokens,
    ...serving,
    estimated: true,
    flag: 'too_low',
  };
  await rig.call('acme', settled, settle);
  await rig.call(
    'acme',
    covered,
    { charge: 0n, ...tokens, ...cache },
    { amount: 0n, input: 0n, slot: 'chat@2026-11-05' },
  );
  await rig.call('acme', expired, { charge: yuan('0.018'), kind: 'expired', end: undefined });
  await rig.call(
    'acme',
    official,
    { charge: 0n, ...tokens, cost: yuan('0.003096') },
    { amount: 0n, input: 0n, official: true, model: 'o, "3"' },
  );
  await rig.call('acme', released, { charge: 0n, kind: 'released', end: 'failed' });
  await rig.call(
    'other',
    idAt('2026-11-10T12:00:00Z'),
    { charge: yuan('0.01') },
    { price: '2:call:0.01', model: 'b' },
  );
  await rig.reserve('acme', open);
});
afterAll(async () => rig.stop());

describe('ledger list', () => {
  it('shows the newest rows of an account, including grants, by time', async () => {
    const run = await rig.ops('ledger list --account acme --limit 3 --json');
    const rows = JSON.parse(run.output) as Record<string, unknown>[];
    expect(rows.map((row) => row['id'])).toEqual(['grant#start-acme', released, official]);
    expect(rows[0]).toMatchObject({ kind: 'grant', amount: '100', reason: 'paid' });
    expect(run.errors).toContain('Showing the newest 3 of 6 rows: use --limit, --from or --csv for more');
    const table = await rig.ops('ledger list --account acme');
    expect(table.output).toMatch(
      /2026-11-10T10:00:00Z {2}acme .* settled .* 12\+40 .* 0.003096 {2}estimated \(too_low\)/,
    );
    expect(table.output).toMatch(/\+100 .* paid/);
    expect(table.output).toContain(
      'plan chat@2026-11-05, 7 cached, 3 written to the cache, 2 written to it for an hour',
    );
  });

  it('reads a span of time: from is included, to is not', async () => {
    const words = ['--from', '2026-11-10T11:00:00Z', '--to', '2026-11-11T11:00:00Z', '--json'];
    const run = await rig.ops(['ledger', 'list', '--account', 'acme', ...words]);
    const ids = (JSON.parse(run.output) as { id: string }[]).map((row) => row.id);
    expect(ids).toEqual([expired, covered]);
    const wrong = await rig.ops('ledger list --from 2026-11-11 --to 2026-11-10');
    expect(wrong).toMatchObject({ code: 2 });
    expect((await rig.ops('ledger list --from soon')).errors).toContain('Expected a time such as');
  });

  it('exports all accounts as machine-readable CSV', async () => {
    const run = await rig.ops('ledger list --csv');
    const [head, ...lines] = run.output.trimEnd().split('\n');
    expect(head).toMatch(/^began,booked,account,id,kind,/);
    expect(head).toMatch(
      /,amount,reason,cached_tokens,.*,channel,upstream_model,bought,first_content_ms,flag(,|$)/,
    );
    expect(lines).toHaveLength(8);
    expect(lines.filter((line) => line.includes(',7,3,2,,,,,'))).toHaveLength(1);
    expect(run.output).toContain(',"o, ""3""",');
    expect(run.errors).toContain('local tables at');
  });
});

describe('ledger total', () => {
  it('adds up exactly by account, model and day', async () => {
    const run = await rig.ops('ledger total --by account,day --csv');
    const shown =
      'account,day,calls,prompt_tokens,completion_tokens,charged,official,granted,cached_tokens,cache_write_tokens,cache_write_1h_tokens,bought,bought_calls,bought_charged,margin acme,2026-11-10,2,24,80,0.003096,0,0,7,3,2,0.002,1,0.003096,0.001096 acme,2026-11-11,3,12,40,0.018,0.003096,100,0,0,0,0,0,0, other,2026-11-10,1,0,0,0.01,0,0,0,0,0,0,0,0, other,2026-11-11,0,0,0,0,0,1,0,0,0,0,0,0,'.split(
        ' ',
      );
    // New columns are appended at the end.
    const lines = run.output.trimEnd().split('\n');
    expect(lines.map((line, at) => line.slice(0, shown[at]?.length))).toEqual(shown);
    const models = await rig.ops('ledger total --by model --account other');
    expect(models.output).toContain('Total: 1 call, ¥0.01 charged, ¥1.00 granted');
    expect((await rig.ops('ledger total --by week')).code).toBe(2);
  });

  it('adds up by end user and by tag, and only the selected ones', async () => {
    const by = await rig.ops('ledger total --account acme --by end_user,tag:team --csv');
    expect(by.output).toMatch(/^end_user,tag:team,calls,/);
    expect(by.output).toMatch(/\nalice,search,1,12,40,0\.003096,/);
    expect(by.output).toMatch(/\n\(none\),\(none\),4,/);
    for (const words of ['--end-user alice', '--tag team=search,env=prod']) {
      const { output } = await rig.ops(`ledger list ${words} --json`);
      expect(JSON.parse(output)).toMatchObject([
        { id: settled, end_user: 'alice', tags: 'env=prod,team=search' },
      ]);
    }
    const claudes = JSON.stringify({ device_id: 'd'.repeat(64), account_uuid: 'alice', session_id: 's' });
    expect((await rig.ops(['ledger', 'list', '--end-user', claudes])).output).toContain(settled);
    expect((await rig.ops('ledger list --tag team=ads')).output).toContain('No ledger rows.');
    expect((await rig.ops('ledger total --by tag:')).code).toBe(2);
  });

  it('computes the margin only over calls with a known cost, and shows their number', async () => {
    const acme = await rig.ops('ledger total --account acme');
    expect(acme.output).toContain(
      'Margin: ¥0.001096 on ¥0.003096 charged for the 1 of 5 calls with known cost',
    );
    const other = await rig.ops('ledger total --account other');
    expect(other.output).toContain('Margin: unknown (no call has a known cost)');
  });
});

describe('request show', () => {
  it('shows step by step how the charge was computed', async () => {
    const run = await rig.ops(`request show chatcmpl-${settled}`);
    expect(run).toMatchObject({ code: 0 });
    expect(run.errors).toBe('the log groups of this relay are unknown, so only the tables were searched\n');
    for (const words of [
      `Request ${settled} of acme`,
      'rule 1: ¥18 per million input tokens, ¥72 per million output tokens',
      'end user alice, env=prod,team=search',
      '¥0.30 of the balance',
      '12 input and 40 output tokens, estimated by the relay (too_low)',
      'by channel openai, as model m-2026, first content after 812 ms',
      "¥0.002 at the channel's cost",
      '12 x 18 / 1,000,000 = 0.000216',
      '40 x 72 / 1,000,000 = 0.00288',
      '¥0.003096 (rounded half up to 9 decimals',
      '¥0.296904 to the balance',
      'Verified: the charge matches',
    ])
      expect(run.output).toContain(words);
  });

  it.each([
    ['a call on a plan', covered, 'a call of the plan entry "chat", month from 2026-11-05'],
    ['a call with a cached prompt', covered, 'of the input: 7 cached, 3 written to the cache'],
    ['an expired call', expired, 'expired: the function died, only the input is charged'],
    ['an official call', official, '¥0.003096 without official mode'],
    ['a failed call', released, 'not charged: the call had no answer (failed)'],
    ['a call in flight', open, 'is in flight: model'],
  ])('shows the steps of %s', async (_case, id, words) => {
    const run = await rig.ops(`request show ${id}`);
    expect(run.code).toBe(0);
    expect(run.output).toContain(words);
  });

  it('reports no charge for the input of a call on a plan whose function died', async () => {
    const id = idAt('2026-11-11T14:00:00Z');
    const planned = { amount: 0n, input: 0n, slot: 'chat@2026-11-05' };
    await rig.call('planned', id, { charge: 0n, kind: 'expired', end: undefined }, planned);
    const run = await rig.ops(`request show ${id}`);
    expect(run.output).toContain('expired: the function died, nothing is charged');
  });

  it('fails for an id without a ledger row or an open reservation, and for an invalid id', async () => {
    const unknown = await rig.ops(['request', 'show', idAt('2026-01-01')]);
    expect(unknown.code).toBe(1);
    expect(unknown.errors).toContain('no ledger row or open reservation has the id');
    expect(await rig.ops('request abc')).toMatchObject({ code: 2 });
    // Each account may have a grant with this name.
    const grant = await rig.ops('request show grant#first');
    expect(grant).toMatchObject({ code: 2, errors: expect.stringContaining('grant show') as string });
  });
});
