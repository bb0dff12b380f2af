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
  [refused(), 'the secret of second is not there or cannot be read'],
  [refused('other'), 'our account or key at the upstream of second is refused or empty'],
  // The code of the upstream is one of the relay's as well.
  [{ code: 'model_not_found', reason: 'upstream_refused_404' }, 'second has no such address, or no model'],
  [
    { code: 'model_not_found', reason: 'upstream_status_404' },
    'mapper of m; npx --no relay-ops channel sync',
  ],
  [{ code: 'model_not_found', reason: 'unknown' }, 'no enabled channel serves m, or it has no price'],
  [{ code: 'model_not_found', reason: 'no_price', model: '' }, 'prices the model, so its calls are refused'],
  [{ code: 'model_not_found', reason: 'no_price', model: '' }, 'models=MODEL input=YUAN'],
  [{ code: 'other', reason: 'other' }, 'the error that it got names the field'],
  [{ code: 'unavailable', reason: 'not_in_tariff' }, 'was edited between its acceptance and its run'],
  [{ code: 'unavailable', reason: 'background_late' }, 'relay-ops doctor shows whether functions'],
  [
    { FirstContentMs: 15_000, attempts: [{ channel: 'second', at: 14_000, outcome: 'answered', ms: 900 }] },
    'it waited 14 s before a channel was asked, so no channel is at fault',
  ],
  [{ FirstContentMs: 60_000 }, 'request list --channel second --status slow --since 1h shows'],
])('after %j says what to do', (fields, words) => {
  const line = { account: 'acme', model: 'm', channel: 'second', ...fields };
  expect(adviseNextStep({ id: 'x', line: { atMs: 0, fields: line }, events: [] }, target)).toContain(words);
});

it('names the stack where it is not the machine’s own', () => {
  const line = { account: 'acme', code: 'insufficient_quota', reason: 'quota_insufficient' };
  const story = { id: 'x', line: { atMs: 0, fields: line }, events: [] };
  expect(adviseNextStep(story, { stack: 'shop', local: false })).toContain('--reason WHY --stack shop');
});
