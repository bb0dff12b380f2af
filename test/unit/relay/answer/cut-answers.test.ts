import { describe, expect, it } from 'vitest';
import { chatEndpoint } from '../../../../shared/endpoints/chat/chat-endpoint.ts';
import type { Endpoint } from '../../../../shared/endpoints/endpoint.ts';
import { BillingRig, small, yuan } from '../../../support/billing-rig.ts';
import { delta, hang, reset, usage, type Step } from '../../../support/core-rig.ts';

const request = { ...small, stream: true };
/** More tokens than the text has: only the upstream's own count can be the one that is found. */
const counted: Step[] = [delta('a'), usage(7, 40)];
const charge = 87_000_000n;

/** Its renderer fails on the chunk that follows the first text, so the stream above it is returned early. */
const brokenEndpoint: Endpoint = {
  ...chatEndpoint,
  read(body) {
    const read = chatEndpoint.read(body);
    return {
      ...read,
      renderer(identity, now) {
        const renderer = read.renderer(identity, now);
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
      promptTokens: 7,
      completionTokens: 40,
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
