import { describe, expect, it } from 'vitest';
import { BillingRig, small, yuan, type BillingOptions } from '../../../support/billing-rig.ts';
import { hello } from '../../../support/core-rig.ts';

const rigOf = (key: Record<string, unknown>, options: BillingOptions = {}): BillingRig =>
  new BillingRig({ key, ...options }).upstream({ steps: hello }).granted(100n * yuan);
const limits = (headers: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => /^(x-ratelimit|retry-after)/.test(name)));

describe('a key with a limit of requests a minute', () => {
  it('gets the remaining requests and their reset time with each answer', async () => {
    const rig = rigOf({ rpm: 2 });
    await rig.clock.run(rig.clock.sleep(12_300));
    const answers = [await rig.call(), await rig.call({ ...small, stream: true })];
    expect(answers.map(({ headers }) => limits(headers))).toEqual(
      ['1', '0'].map((left) => ({
        'x-ratelimit-limit-requests': '2',
        'x-ratelimit-remaining-requests': left,
        'x-ratelimit-reset-requests': '48s',
      })),
    );
  });

  it('is rejected beyond its limit until the minute is over, with the time to wait', async () => {
    const rig = rigOf({ rpm: 1 });
    await rig.call();
    await rig.clock.run(rig.clock.sleep(10_000));
    const answer = await rig.call();
    expect(answer.status).toBe(429);
    expect(limits(answer.headers)).toEqual({
      'retry-after': '50',
      'x-ratelimit-limit-requests': '1',
      'x-ratelimit-remaining-requests': '0',
      'x-ratelimit-reset-requests': '50s',
    });
    expect(answer.headers['x-should-retry']).toBeUndefined();
    expect(JSON.parse(answer.text)).toEqual({
      error: {
        message: 'This API key is limited to 1 requests a minute. Please try again in 50s.',
        type: 'rate_limit_error',
        param: null,
        code: 'rate_limit_exceeded',
      },
    });
    expect(rig.sent).toHaveLength(1);
    await rig.clock.run(rig.clock.sleep(50_000));
    expect((await rig.call()).status).toBe(200);
  });
});

describe('a key with a limit of concurrent requests', () => {
  const slow = [5_000, ...hello];

  it('is rejected beyond its limit, and admitted again when one request ends', async () => {
    const rig = rigOf({ max_concurrency: 2 }).upstream({ steps: slow });
    const answers = await Promise.all([rig.call(), rig.call(), rig.call()]);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(2);
    const refused = answers.find(({ status }) => status === 429);
    expect(refused?.headers['retry-after']).toBe('1');
    expect(JSON.parse(refused?.text ?? '')).toMatchObject({
      error: {
        code: 'rate_limit_exceeded',
        message: 'This API key is limited to 2 requests at the same time. Please try again in 1s.',
      },
    });
    expect((await rig.call()).status).toBe(200);
    expect(rig.item?.permits).toEqual(new Map());
  });
});
