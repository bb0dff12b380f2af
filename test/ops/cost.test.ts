import { describe, expect, it } from 'vitest';
import type { CostReport } from '../../shared/operate/cost.ts';
import { runOps } from './run-ops.ts';

async function reportOf(...options: string[]): Promise<CostReport> {
  const { code, output } = await runOps(['cost', '--json', ...options]);
  expect(code).toBe(0);
  return JSON.parse(output) as CostReport;
}

describe('ops cost', () => {
  it('names no target and asks nobody: it needs no tables and no account', async () => {
    const { code, output, errors } = await runOps(['cost', '--stack', 'elsewhere']);
    expect({ code, errors }).toEqual({ code: 0, errors: '' });
    expect(output).not.toContain('elsewhere');
  });

  it('has a number in each line of a stack that nobody calls and that has no channel', async () => {
    const { traffic, idle, sums } = await reportOf('--calls', '0', '--channels', '0');
    const amounts = [...traffic, ...idle, ...Object.values(sums)].flatMap(({ list, billed }) => [
      list,
      billed,
    ]);
    expect(amounts.filter((amount) => !Number.isFinite(amount))).toEqual([]);
    expect(sums.month).toEqual(sums.idle);
  });

  it('takes a chunk for each token, unless it is said how many chunks there are', async () => {
    const byTokens = await reportOf('--tokens', '900');
    expect(byTokens.workload.chunks).toBe(900);
    expect((await reportOf('--tokens', '900', '--chunks', '300')).workload.chunks).toBe(300);
  });

  it('charges for a longer call, more memory and a dearer region, line by line with the source of each price', async () => {
    const usual = await reportOf();
    for (const options of [
      ['--seconds', '20'],
      ['--memory', '512'],
      ['--region', 'ap-northeast-1'],
      ['--failures', '50'],
      ['--channels', '40'],
      ['--web-acl'],
      ['--months-kept', '12'],
    ])
      expect((await reportOf(...options)).sums.month.billed).toBeGreaterThan(usual.sums.month.billed);
    expect((await reportOf('--same-region')).sums.month.list).toBeLessThan(usual.sums.month.list);
    for (const { source, unit } of [...usual.traffic, ...usual.idle]) {
      expect(source).toMatch(/\(.*(20\d\d|not).*\)$/);
      expect(unit).not.toBe('');
    }
  });

  it('renews the lease of a call each minute, and streams what is beyond 6 MB for money', async () => {
    const writes = async (seconds: string) =>
      (await reportOf('--seconds', seconds)).traffic.find(({ what }) => what === 'reserve, settle, leases');
    expect((await writes('60'))?.quantity).toBe(2_000_000);
    expect((await writes('61'))?.quantity).toBe(3_000_000);
    const large = await reportOf('--chunks', '100000');
    expect(large.traffic.find(({ what }) => what === 'answers beyond 6 MB')?.list).toBeGreaterThan(0);
  });

  it('says so when a plan of CloudFront allows less traffic', async () => {
    const { errors } = await runOps(['cost', '--calls', '2000000', '--plan', 'free']);
    expect(errors).toContain('above what plan free allows');
    expect((await reportOf('--calls', '900000', '--chunks', '50', '--plan', 'free')).remarks).toEqual([]);
  });

  it.each([
    [['--region', 'mars-1'], 'us-east-1, us-west-2'],
    [['--plan', 'gold'], 'pay-as-you-go, free'],
    [['--memory', '64'], 'from 128 MB on'],
    [['--calls', '-1'], '0 or more'],
    [['--calls', '9000000', '--rate', '1'], 'do not fit into a month'],
    [['--rate', '0'], 'above 0'],
  ])('refuses %j', async (options, says) => {
    const { code, errors } = await runOps(['cost', ...options]);
    expect(code).toBe(2);
    expect(errors).toContain(says);
  });
});
