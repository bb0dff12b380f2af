import { describe, expect, it } from 'vitest';
import { chatEndpoint } from '../../../../shared/endpoints/chat/chat-endpoint.ts';
import type { Endpoint } from '../../../../shared/endpoints/endpoint.ts';
import { AnswerCut } from '../../../../shared/relay/http/http.ts';
import { BillingRig, small, yuan } from '../../../support/billing-rig.ts';
import { delta, hang, usage, type Step } from '../../../support/core-rig.ts';

const request = { ...small, stream: true };
/** More tokens than the text has, so that only the upstream's own count can match. */
const counted: Step[] = [delta('a'), usage(7, 40)];
const charge = 87_000_000n;

/** Its renderer fails on the chunk that follows the first text, so the stream above it is returned early. */
const brokenEndpoint: Endpoint = {
  ...chatEndpoint,
  read(body, headers) {
    const read = chatEndpoint.read(body, headers);
    return {
      ...read,
      renderer(identity, facts) {
        const renderer = read.renderer(identity, facts);
        let chunks = 0;
        const push = renderer.push.bind(renderer);
        return Object.assign(renderer, {
          push(chunk: Parameters<typeof push>[0]) {
            chunks += 1;
            if (chunks > 1) throw new TypeError('a renderer with a bug');
            return push(chunk);
          },
        });
      },
    };
  },
};

describe('a cut call', () => {
  it('calls no upstream and charges nothing when its host ended before it began', async () => {
    const rig = new BillingRig().granted(yuan).upstream({ steps: [delta('a')] });
    const { status } = await rig.call(request, { hostEnds: AbortSignal.abort() });
    expect(status).toBe(504);
    expect(rig.sent).toEqual([]);
    expect(rig.item?.last).toMatchObject({ kind: 'released', charge: 0n });
  });

  it('still settles, releases its claim and timers, and logs when even its failure cannot be rendered', async () => {
    const endpoint: Endpoint = {
      ...chatEndpoint,
      read: (body) => {
        const read = brokenEndpoint.read(body, headers);
        const failed = (): never => {
          throw new TypeError('another bug');
        };
        const renderer: typeof read.renderer = (...parts) =>
          Object.assign(read.renderer(...parts), { failed });
        return { ...read, renderer };
      },
    };
    const steps = [...counted, delta('b'), hang];
    const rig = new BillingRig({ endpoint }).granted(yuan).upstream({ steps });
    const headers = { authorization: 'Bearer sk-test', 'idempotency-key': 'k' };
    // The error cannot be rendered, so the answer must be cut, or the client would take it for complete.
    await expect(rig.call(request, { headers })).rejects.toBeInstanceOf(AnswerCut);

    expect(rig.open).toEqual([]);
    expect(rig.item?.last).toMatchObject({ kind: 'settled', charge, end: 'failed' });
    expect(rig.logged).toMatchObject([{ code: 'internal', end: 'failed' }]);
    expect(rig.faults).toHaveLength(2);
    // The counts of the account are written after the answer.
    await rig.clock.run(rig.clock.sleep(1));
    expect(rig.refusals.added).toMatchObject([{ account: 'acme', counts: { internal: 1 } }]);
    expect(rig.clock.pendingTimers).toBe(0);
  });
});
