import { describe, expect, it } from 'vitest';
import { StoreUnavailable } from '../../../shared/relay/ports/store-errors.ts';
import { CoreRig, delta, hang, hello, keyRow } from '../../support/core-rig.ts';

const ask = { model: 'm', messages: [{ role: 'user', content: 'hi' }] };
let requests = 0;
const withKey = (key: string): { id: string; headers: Record<string, string> } => ({
  id: `request-${(requests += 1)}`,
  headers: { authorization: 'Bearer sk-test', 'idempotency-key': key },
});
const codeOf = (text: string): string => JSON.parse(text).error.code;

describe('an Idempotency-Key', () => {
  it('runs a request once: a repeat gets the id of the first', async () => {
    const rig = new CoreRig().upstream({ steps: hello });
    const first = await rig.post(ask, withKey('k'));
    const repeat = await rig.post(ask, withKey('k'));
    expect(first.status).toBe(200);
    expect([repeat.status, codeOf(repeat.text)]).toEqual([409, 'request_already_completed']);
    expect(repeat.text).toContain(first.headers['x-request-id']);
    expect(repeat.headers['x-should-retry']).toBe('false');
    expect(rig.sent).toHaveLength(1);
  });

  it('answers a repeat with 409 while the first request runs', async () => {
    const rig = new CoreRig().upstream({ steps: [delta('a'), hang] });
    const response = await rig.clock.run(rig.respond({ ...ask, stream: true }, withKey('k')));
    const repeat = await rig.respond({ ...ask, stream: true }, withKey('k'));
    expect([repeat.status, codeOf(repeat.body as string)]).toEqual([409, 'request_in_progress']);
    expect(repeat.headers['retry-after']).toMatch(/^\d+$/);
    await rig.clock.run(response.done);
  });

  it('that could not be claimed is rejected soon, even if its release gets no reply', async () => {
    const rig = new CoreRig({
      composed: (ports, handleOf) => {
        const claim = () => Promise.reject(new StoreUnavailable('no reply'));
        const finish = () => ports.clock.sleep(60_000);
        return handleOf({ ...ports, idempotency: { claim, finish } });
      },
    });
    const { status, said } = await rig.post(ask, withKey('k'));
    expect(status).toBe(503);
    expect(said[0]?.atMs).toBeLessThanOrEqual(500);
  });

  it('rejects another body under the same key', async () => {
    const rig = new CoreRig().upstream({ steps: hello });
    await rig.post(ask, withKey('k'));
    const other = await rig.post({ ...ask, temperature: 1 }, withKey('k'));
    expect([other.status, codeOf(other.text)]).toEqual([422, 'idempotency_key_reused']);
  });

  it('belongs to one API key: another API key may use the same value', async () => {
    const keys = {
      'sk-test': { row: keyRow() },
      'sk-other': { row: keyRow({ hash: 'b'.repeat(64), account: 'other' }) },
    };
    const rig = new CoreRig({ keys }).upstream({ steps: hello });
    const other = { authorization: 'Bearer sk-other', 'idempotency-key': 'k' };
    expect((await rig.post(ask, withKey('k'))).status).toBe(200);
    expect((await rig.post(ask, { id: 'request-other', headers: other })).status).toBe(200);
  });
});
