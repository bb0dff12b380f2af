import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { chatEndpoint } from '../../../../shared/endpoints/chat/chat-endpoint.ts';
import type { Endpoint } from '../../../../shared/endpoints/endpoint.ts';
import { responsesEndpoint } from '../../../../shared/endpoints/responses/responses-endpoint.ts';
import { AnswerCut } from '../../../../shared/relay/http/http.ts';
import { Bill } from '../../../../shared/relay/money/bill.ts';
import { BillingRig, small, yuan } from '../../../support/billing-rig.ts';
import { delta, hang, reset, usage, type Step } from '../../../support/core-rig.ts';
import { StoredRig } from '../stored/stored-rig.ts';

const request = { ...small, stream: true };
/** More tokens than the text has: only the upstream's own count can be the one that is found. */
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

describe('the usage that a stream carried before it was cut is what is billed and logged', () => {
  it.each<[string, Step[], string, Partial<{ endpoint: Endpoint }>]>([
    ['when it throws', [...counted, reset], 'upstream_unavailable', {}],
    ['when it is returned early', [...counted, delta('b'), hang], 'internal', { endpoint: brokenEndpoint }],
    ['when the deadline passes', [...counted, hang], 'upstream_timeout', {}],
  ])('%s', async (_ending, steps, code, more) => {
    const channels = [{ idle_seconds: 900, total_seconds: 900 }];
    const rig = new BillingRig({ channels, ...more }).granted(yuan).upstream({ steps });
    await rig.call(request, { hostDeadlineMs: rig.clock.now() + 60_000 });

    expect(rig.item?.last).toMatchObject({
      kind: 'settled',
      charge,
      prompt_tokens: 7,
      completion_tokens: 40,
      estimated: false,
      end: 'failed',
    });
    expect(rig.logged).toHaveLength(1);
    expect(rig.logged[0]).toMatchObject({
      code,
      prompt_tokens: 7,
      completion_tokens: 40,
      usage_estimated: false,
      charge: '0.087',
    });
    expect(rig.open).toEqual([]);
  });
});

describe('the end of a call', () => {
  it('is there before its beginning when its host has ended: no upstream is called, nothing is charged', async () => {
    const rig = new BillingRig().granted(yuan).upstream({ steps: [delta('a')] });
    const { status } = await rig.call(request, { hostEnds: AbortSignal.abort() });
    expect(status).toBe(504);
    expect(rig.sent).toEqual([]);
    expect(rig.item?.last).toMatchObject({ kind: 'released', charge: 0n });
  });

  it('is reached when not even its failure can be rendered: money, claim, timers and log line', async () => {
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
    // No error can be rendered, so the client must not take what it has for an answer.
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

it.each([true, false])(
  'an answer of which no whole can be made to keep ends like others: bill, claim and log line (stream: %s)',
  async (stream) => {
    const endpoint: Endpoint = {
      ...responsesEndpoint,
      read: (body, headers, storage) => {
        const read = responsesEndpoint.read(body, headers, storage);
        const whole = (): never => {
          throw new TypeError('a renderer with a bug');
        };
        const renderer: typeof read.renderer = (...parts) =>
          Object.assign(read.renderer(...parts), { whole });
        return { ...read, renderer };
      },
    };
    const rig = new StoredRig({ endpoint });
    await rig.create({ stream }).catch(() => {});
    expect(rig.faults).not.toEqual([]);
    expect(rig.logged).toMatchObject([{ code: 'internal', end: 'failed' }]);
  },
);

describe('what stages are given', () => {
  it('is frozen all the way down', async () => {
    const admitted = vi.spyOn(Bill, 'admit');
    onTestFinished(() => admitted.mockRestore());
    await new BillingRig().granted(yuan).upstream({ steps: counted }).call(request);
    const [, , call] = admitted.mock.lastCall ?? [];
    const loose = (value: unknown, at: string): string[] => {
      if (typeof value !== 'object' || value === null || value instanceof AbortSignal) return [];
      const inside = Object.entries(value).flatMap(([name, part]) => loose(part, `${at}.${name}`));
      return Object.isFrozen(value) ? inside : [at, ...inside];
    };
    expect(Object.keys(call ?? {})).toContain('identity');
    expect(loose(call, 'call')).toEqual([]);
  });
});
