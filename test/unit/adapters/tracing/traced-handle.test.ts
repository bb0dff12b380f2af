import { describe, expect, it } from 'vitest';
import { tracedHandle } from '../../../../shared/adapters/tracing/traced-handle.ts';
import type { ChatPorts } from '../../../../shared/relay/call/chat-ports.ts';
import type { Handle, RelayResponse } from '../../../../shared/relay/http/http.ts';
import { BillingRig, byCall, stream, yuan } from '../../../support/billing-rig.ts';
import { delta, finish, hang, usage, type Step } from '../../../support/core-rig.ts';

/** No trace is sent, so nothing is waited for in real time. */
const settings = { url: 'http://127.0.0.1:1', headers: {}, service: undefined, ratio: 0 };

const traced = (ports: ChatPorts, handleOf: (ports: ChatPorts) => Handle): Handle =>
  tracedHandle({ settings, ports, handleOf, stack: 'relay', version: '1' });
const plain = (ports: ChatPorts, handleOf: (ports: ChatPorts) => Handle): Handle => handleOf(ports);

const answer = [delta('a'), finish(), usage(7, 2)];

async function opened(steps: Step[], composed: typeof traced) {
  const rig = new BillingRig({ charges: [byCall], composed }).granted(yuan).upstream({ steps });
  const response = await rig.clock.run(rig.respond(stream));
  const reads = (response.body as AsyncIterable<string>)[Symbol.asyncIterator]();
  return { rig, response, reads };
}

describe.each([
  ['traced', traced],
  ['not traced', plain],
])('a client of a call that is %s', (_how, composed) => {
  it('and leaves before the first text, while one is waited for, pays nothing for the call', async () => {
    // The heartbeat has begun the answer.
    const { rig, response, reads } = await opened([20_000, ...answer], composed);
    expect((await reads.next()).value).toContain(':');
    const waiting = reads.next();
    void reads.return?.();
    expect(await waiting).toEqual({ done: true, value: undefined });
    await rig.clock.run(response.done);
    expect(rig.logged).toMatchObject([{ end: 'client_gone', charge: '0' }]);
    expect(rig.item?.available).toBe(yuan);
  });

  it('and leaves before it has read anything is waited for no longer', async () => {
    const { rig, response, reads } = await opened(answer, composed);
    const endsMs = rig.clock.now();
    await reads.return?.();
    await rig.clock.run(response.done);
    expect(rig.clock.now()).toBe(endsMs);
    expect(rig.events).toEqual([]);
  });

  it('and stays has the whole answer and pays for it', async () => {
    const rig = new BillingRig({ charges: [byCall], composed }).granted(yuan).upstream({ steps: answer });
    expect((await rig.call(stream)).text).toContain('[DONE]');
    expect(rig.logged).toMatchObject([{ end: 'completed', charge: '0.5' }]);
  });

  it('and has an answer that is cut at its deadline is told so', async () => {
    const { rig, response } = await opened([delta('a'), hang], composed);
    const said: string[] = [];
    const read = async (): Promise<void> => {
      for await (const text of response.body) said.push(text);
    };
    await rig.clock.run(read());
    expect(said.join('')).toContain('"error"');
  });
});

describe('the trace of a call', () => {
  const sampled = { ...settings, ratio: 1 };
  const nothing: RelayResponse = { status: 200, headers: {}, body: '', done: Promise.resolve() };

  it('ends also where the call fails in a way that nobody foresaw, and the host sees the same failure', async () => {
    const bug = new Error('a bug');
    const done = Promise.reject(bug);
    done.catch(() => undefined);
    const failing: Handle[] = [() => Promise.reject(bug), async () => ({ ...nothing, done })];
    for (const handle of failing) {
      const lost = Promise.withResolvers<void>();
      const rig = new BillingRig({
        composed: (ports) => {
          const log = { ...ports.log, event: () => lost.resolve() };
          return tracedHandle({
            settings: sampled,
            ports: { ...ports, log },
            handleOf: () => handle,
            stack: 'relay',
            version: '1',
          });
        },
      });
      await expect(rig.respond(stream).then((response) => response.done)).rejects.toBe(bug);
      // It was sent, to a receiver that does not exist.
      await lost.promise;
    }
  });
});
