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
    ['grows with the request, which has to be read', {}, {}, 40_000, 130],
    ['does not grow without end', {}, {}, 50_000_000, 240],
    ['is longer where the model is to think long', {}, { reasoning_effort: 'xhigh' }, 0, 240],
    ['is not longer for little effort', {}, { reasoning_effort: 'low' }, 0, 120],
    ['is the time of the whole answer where none is streamed', { params: { stream: false } }, {}, 0, 600],
    ['is it as the row has it', { params: { stream: false }, total_seconds: 900 }, {}, 0, 900],
    [
      'is what the row says also there',
      { params: { stream: false }, first_content_seconds: 30 },
      {},
      40_000,
      30,
    ],
    [
      'is what the row says, whatever the call is',
      { first_content_seconds: 7 },
      { reasoning_effort: 'high' },
      40_000,
      7,
    ],
  ])('%s', (_case, attributes, request, bodyLength, seconds) => {
    expect(timeLimits(row(attributes), callWith(request), bodyLength).firstContentMs).toBe(seconds * 1000);
  });

  it('goes on while the upstream gives signs of life', async () => {
    const comments = Array.from({ length: 8 }, () => [': thinking\n\n', 100_000])
      .flat()
      .slice(0, 11);
    const rig = new CoreRig({}).upstream({ steps: [...comments, delta('at last'), finish()] });
    const answer = await rig.post(ask);
    expect(answer.status).toBe(200);
    expect(answer.text).toContain('at last');
  });
});
