import { describe, expect, it } from 'vitest';
import { ChannelRow } from '../../../../shared/config/rows/channel-row.ts';
import type { ChatCall } from '../../../../shared/relay/call/call.ts';
import { timeLimits } from '../../../../shared/relay/dispatch/time-limits.ts';
import { CoreRig, delta, finish } from '../../../support/core-rig.ts';

const row = (more: object = {}): ChannelRow =>
  ChannelRow.parse({ id: 'c', models: ['m'], endpoint: 'https://x.test/v1', ...more });
const callWith = (request: object): ChatCall => ({ request }) as unknown as ChatCall;
const ask = { model: 'm', messages: [{ role: 'user', content: 'hi' }], stream: true };

describe('the wait for the first content', () => {
  it.each([
    ['is two minutes', {}, {}, 0, 120],
    ['grows with the size of the request', {}, {}, 40_000, 130],
    ['grows up to a maximum', {}, {}, 50_000_000, 240],
    ['is longer for a high reasoning effort', {}, { reasoning_effort: 'xhigh' }, 0, 240],
    ['is not longer for little effort', {}, { reasoning_effort: 'low' }, 0, 120],
    ['is the total time limit for an answer that is not streamed', { params: { stream: false } }, {}, 0, 600],
    [
      'is the total time limit of the row for such an answer',
      { params: { stream: false }, total_seconds: 900 },
      {},
      0,
      900,
    ],
    [
      'is the limit of the row even for such an answer',
      { params: { stream: false }, first_content_seconds: 30 },
      {},
      40_000,
      30,
    ],
    [
      'is the limit of the row for any call',
      { first_content_seconds: 7 },
      { reasoning_effort: 'high' },
      40_000,
      7,
    ],
  ])('%s', (_case, attributes, request, bodyLength, seconds) => {
    expect(timeLimits(row(attributes), callWith(request), bodyLength).firstContentMs).toBe(seconds * 1000);
  });

  it('is extended while the upstream shows signs of life', async () => {
    const comments = Array.from({ length: 8 }, () => [': thinking\n\n', 100_000])
      .flat()
      .slice(0, 11);
    const rig = new CoreRig({}).upstream({ steps: [...comments, delta('at last'), finish()] });
    const answer = await rig.post(ask);
    expect(answer.status).toBe(200);
    expect(answer.text).toContain('at last');
  });
});
