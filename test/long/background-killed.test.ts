import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BackgroundRig } from '../local/background-rig.ts';
import { until } from '../local/money-reader.ts';
import { textThenSilence } from '../support/upstream-scripts.ts';

let rig: BackgroundRig;

beforeAll(async () => {
  rig = await BackgroundRig.start(['killed']);
});
afterAll(() => rig?.stop());

describe('a background response on the running stack', () => {
  it('whose function is killed reads as failed, and its reservation is closed', async () => {
    rig.upstream.script(textThenSilence('Hello'));
    const before = rig.stack.processes('background').length;
    const arrived = rig.upstream.nextRequest();
    const id = await rig.accepted('killed');
    await arrived;
    const pids = rig.stack.processes('background');
    expect(pids.length).toBeGreaterThanOrEqual(before);
    for (const pid of pids) if (isAlive(pid)) process.kill(pid, 'SIGKILL');
    expect(await rig.ended('killed', id)).toMatchObject({
      status: 'failed',
      error: { code: 'server_error' },
    });
    await until(async () => {
      await rig.stack.runSchedules();
      return (await rig.money.account('killed')).open === 0;
    });
    expect(await rig.money.ledger('killed', 1)).toMatchObject([{ kind: 'expired' }]);
  }, 120_000);
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
