/** Anthropic's customer profiles: only the account's row names one, and a rejected one affects only its customer. */
import { describe, expect, it } from 'vitest';
import { AccountRow } from '../../../../shared/config/rows/account-row.ts';
import { CoreRig, demoKey, keyRow, type RigOptions, type UpstreamScript } from '../../../support/core-rig.ts';

const path = '/v1/messages';
const otherKey = 'sk-other';
const body = { model: 'm', max_tokens: 100, messages: [{ role: 'user', content: 'hi' }] };
const claude = { id: 'claude', type: 'anthropic', endpoint: 'https://claude.test/v1', secret: 'key' };
const message = {
  id: 'msg_vendor',
  type: 'message',
  role: 'assistant',
  content: [{ type: 'text', text: 'ok' }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 9, output_tokens: 3 },
};
const json = { 'content-type': 'application/json' };
const answered: UpstreamScript = { headers: json, steps: [JSON.stringify(message)] };
const refused = (status: number, details?: object, type = 'permission_error'): UpstreamScript => ({
  status,
  headers: json,
  steps: [JSON.stringify({ type: 'error', error: { type, message: 'uprof_1 is banned: fraud.', details } })],
});

const rigOf = (options: RigOptions = {}): CoreRig =>
  new CoreRig({
    channels: [claude],
    keys: {
      [demoKey]: {
        row: keyRow(),
        account: AccountRow.parse({ account: 'acme', anthropic_profile: 'uprof_1' }),
      },
      [otherKey]: { row: keyRow({ hash: 'b'.repeat(64), account: 'other' }) },
    },
    ...options,
  });
const ask = (rig: CoreRig, key = demoKey, headers: Record<string, string> = {}) =>
  rig.post(body, { path, headers: { 'x-api-key': key, ...headers } });
const errorOf = (text: string) => (JSON.parse(text) as { error: Record<string, unknown> }).error;

describe('a customer profile', () => {
  it('is sent to Anthropic with each call, together with the client’s betas', async () => {
    const rig = rigOf().upstream(answered);
    await ask(rig, demoKey, { 'anthropic-beta': 'context-1m-2025-08-07' });
    expect(rig.sent[0]?.headers).toMatchObject({
      'anthropic-user-profile-id': 'uprof_1',
      'anthropic-beta': 'context-1m-2025-08-07,user-profiles-2026-09-04',
    });
  });

  it('is sent in the run of a background response, too', async () => {
    const row = {
      row: keyRow({ store: true }),
      account: AccountRow.parse({ account: 'acme', anthropic_profile: 'uprof_1' }),
    };
    const rig = rigOf({ keys: { [demoKey]: row } }).upstream(answered);
    await rig.post({ model: 'm', input: 'hi', background: true }, { path: '/v1/responses' });
    await rig.clock.run(rig.runs());
    expect(rig.sent[0]?.headers).toMatchObject({ 'anthropic-user-profile-id': 'uprof_1' });
  });

  it('is sent for clients of other endpoints and for token counts, too', async () => {
    const rig = rigOf().upstream(answered, { headers: json, steps: ['{"input_tokens": 3}'] });
    const { max_tokens: _limit, ...chat } = body;
    await rig.post(chat);
    await rig.post(body, { path: '/v1/messages/count_tokens', headers: { 'x-api-key': demoKey } });
    expect(rig.sent.map(({ headers }) => headers['anthropic-user-profile-id'])).toEqual([
      'uprof_1',
      'uprof_1',
    ]);
  });

  it.each([
    ['another vendor', { type: 'openai', endpoint: 'https://o.test/v1', dialect: 'messages' }],
    ["the vendor's other form", { ...claude, dialect: 'chat' }],
  ])('is not sent to %s', async (_what, channel) => {
    const rig = rigOf({ channels: [channel] }).upstream(answered);
    await ask(rig);
    expect(JSON.stringify(rig.sent)).not.toContain('uprof_1');
  });

  it.each<[details: object | undefined, status: number, type?: string]>([
    [undefined, 403],
    [{ error_code: 'user_profile_banned' }, 403],
    [{ error_code: 'user_profile_not_found' }, 400, 'invalid_request_error'],
  ])(
    'that Anthropic rejects (%j, %i) affects only its customer, who gets the reason',
    async (details, status, type) => {
      const rig = rigOf().upstream(refused(status, details, type), answered);
      const answer = await ask(rig);
      expect(answer.status).toBe(403);
      expect(errorOf(answer.text)).toMatchObject({
        type: 'permission_error',
        code: 'customer_refused',
        message: 'The provider of this model refuses your account: [removed] is banned: fraud.',
      });
      expect(rig.health.writes).toEqual([]);
      expect((await ask(rig, otherKey)).status).toBe(200);
      expect(rig.sent).toHaveLength(2);
    },
  );

  it('is not blamed for a feature that our key may not use', async () => {
    const rig = rigOf().upstream(refused(403), answered);
    const answer = await ask(rig, demoKey, { 'anthropic-beta': 'context-1m-2025-08-07' });
    expect(answer.status).toBe(200);
    expect(rig.sent.map(({ headers }) => headers['anthropic-beta'])).toEqual([
      'context-1m-2025-08-07,user-profiles-2026-09-04',
      'user-profiles-2026-09-04',
    ]);
  });
});

describe('a customer without a profile', () => {
  it('cannot send a profile of its own or another’s, and is told so', async () => {
    const rig = rigOf().upstream(answered);
    const answer = await ask(rig, otherKey, {
      'anthropic-user-profile-id': 'uprof_1',
      'anthropic-beta': 'user-profiles-2026-09-04',
    });
    expect([answer.status, answer.headers['x-relay-dropped']]).toEqual([200, 'anthropic-user-profile-id']);
    expect(JSON.stringify(rig.sent)).not.toMatch(/uprof_1|user-profiles/);
  });

  it('is not blamed for a 403, which is about our key', async () => {
    const rig = rigOf().upstream(refused(403));
    expect((await ask(rig, otherKey)).status).toBe(502);
  });
});
