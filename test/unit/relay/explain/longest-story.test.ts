import { expect, it } from 'vitest';
import { jsonLog } from '../../../../shared/adapters/telemetry/json-log.ts';
import type { Candidate } from '../../../../shared/relay/call/call.ts';
import { type EndedCall, storyLine } from '../../../../shared/relay/explain.ts';
import { Refusal } from '../../../../shared/relay/http/refusal.ts';
import { linesOf } from '../../../support/embedded-metrics.ts';

const odd = '"\\€\n'.repeat(100);
const candidate = (id: number): Candidate =>
  ({ channel: { id: `${id}${odd}` }, model: odd, secret: odd }) as unknown as Candidate;

it('the story with everything, three candidates and the oddest names is at most 2 KB', async () => {
  const all = Array.from({ length: 40 }, (_, id) => candidate(id % 3));
  const tried = all.slice(0, 3).map((one) => ({
    candidate: one,
    outcome: odd,
    vendorCode: odd,
    forms: 4,
    standing: { is: odd },
    startedMs: 1e12,
    contentMs: 2e12,
    endedMs: 3e12,
    attempt: { report: () => ({ upstreamStatus: 503 }) },
  }));
  const passedOver = (one: Candidate) => ({
    candidate: one,
    is: 'blocked',
    kind: 'rate_limit',
    untilMs: 9e12,
  });
  const error = { message: odd, type: 'rate_limit_error', param: odd, code: 'rate_limit_exceeded' } as const;
  const facts = { needed: odd, free: odd, limit: odd, most: 1e12 };
  const refusal = new Refusal(429, error, { reason: odd, facts, headers: { 'retry-after': '99999' } });
  const names = Array.from({ length: 400 }, (_, index) => `field_${index}_${'n'.repeat(20)}`);
  const ended = {
    requestId: 'r'.repeat(26),
    endpoint: odd,
    account: odd,
    model: odd,
    status: 429,
    end: 'client_gone',
    refusal,
    durationMs: 1e12,
    dispatched: {
      call: { startedMs: 0, candidates: all, alias: { name: odd }, request: {}, outputTokensLimit: 1e12 },
      report: {
        tried,
        usualMs: 1e9,
        firstContentMs: 1e9,
        search: 'found',
        sent: { dropped: names },
        story: () => ({ tried, uncarried: [], order: { candidates: all, passedOver } }),
      },
      reserved: { yuan: '9'.repeat(30), slot: odd },
      heard: { length: 1e12, firstMs: 1e12 },
    },
  } as unknown as EndedCall;
  const lines = await linesOf(() => {
    jsonLog('1.12.345').explain(storyLine(ended));
    return Promise.resolve();
  });
  expect(lines).toHaveLength(1);
  expect(Buffer.byteLength(`${lines[0]}\n`)).toBeLessThanOrEqual(2048);
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ shortened: true, why: 'failed retried client_gone' });
});
