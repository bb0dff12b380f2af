import { expect, it } from 'vitest';
import { adviseNextStep } from '../../../shared/operate/requests/next-step.ts';
import type { RequestLine } from '../../../shared/operate/requests/explain-request.ts';

const target = { stack: 'relay', local: true };
const refused = (said?: string) => ({
  code: 'upstream_unavailable',
  reason: 'upstream_account upstream_secret',
  attempts: [{ channel: 'second', at: 3, outcome: 'upstream_secret', ms: 4, ...(said && { code: said }) }],
});

it.each<[RequestLine, string]>([
  [{ code: 'insufficient_quota', reason: 'quota_insufficient' }, 'relay-ops grant new acme AMOUNT'],
  [refused(), 'the secret of second is missing or unreadable'],
  [refused('other'), 'the provider of second rejects your account or API key'],
  // The upstream's code is also one of the relay's.
  [{ code: 'model_not_found', reason: 'upstream_refused_404' }, 'second has a wrong endpoint'],
  [
    { code: 'model_not_found', reason: 'upstream_status_404' },
    'mapper of the channel; npx --no relay-ops channel sync',
  ],
  [{ code: 'model_not_found', reason: 'unknown' }, 'no enabled channel serves m, or it has no price'],
  [{ code: 'model_not_found', reason: 'no_price', model: '' }, 'the model has no valid price'],
  [{ code: 'model_not_found', reason: 'no_price', model: '' }, 'models=MODEL input=YUAN'],
  [{ code: 'other', reason: 'other' }, 'the customer must change the request: the error names the field'],
  [{ code: 'unavailable', reason: 'background_late' }, 'throttled functions with npx --no relay-ops doctor'],
  [
    { FirstContentMs: 15_000, attempts: [{ channel: 'second', at: 14_000, outcome: 'answered', ms: 900 }] },
    'it waited 14 s before the first attempt, so no channel is at fault',
  ],
  [{ FirstContentMs: 60_000 }, 'request list --channel second --status slow --since 1h;'],
])('the error after %j names the next step', (fields, words) => {
  const line = { account: 'acme', model: 'm', channel: 'second', ...fields };
  expect(adviseNextStep({ id: 'x', line: { atMs: 0, fields: line }, events: [] }, target)).toContain(words);
});

it("the next step names the stack if it is not the machine's default", () => {
  const line = { account: 'acme', code: 'insufficient_quota', reason: 'quota_insufficient' };
  const story = { id: 'x', line: { atMs: 0, fields: line }, events: [] };
  expect(adviseNextStep(story, { stack: 'shop', local: false })).toContain('--reason WHY --stack shop');
});
