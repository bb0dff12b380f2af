/** End users and tags: read from body and headers, kept in log line and close record, sent to vendors that ask for them. */
import { describe, expect, it } from 'vitest';
import { encodeCloseRecord } from '../../../../shared/adapters/dynamodb/quotas/quota-items.ts';
import { parseLosses, formatLoss } from '../../../../shared/billing/audit/loss-lines.ts';
import type { OpenEntry } from '../../../../shared/billing/quota-item.ts';
import { showEndUser, readTags } from '../../../../shared/relay/call/attribution.ts';
import { defaultSettings } from '../../../../shared/config/settings.ts';
import { InvalidRequest } from '../../../../shared/wire/invalid-request.ts';
import { entry } from '../../billing/quota-fixtures.ts';
import { CoreRig, demoKey, hello, keyRow, type RigOptions } from '../../../support/core-rig.ts';

const messages = [{ role: 'user', content: 'Hi' }];
const asked = {
  chat: { path: '/v1/chat/completions', body: { model: 'm', messages } },
  responses: { path: '/v1/responses', body: { model: 'm', input: 'Hi' } },
  messages: { path: '/v1/messages', body: { model: 'm', max_tokens: 100, messages } },
} as const;
type Endpoint = keyof typeof asked;
const endpoints = Object.keys(asked) as Endpoint[];

async function call(
  endpoint: Endpoint,
  {
    body = {},
    headers = {},
    ...options
  }: RigOptions & { body?: object; headers?: Record<string, string> } = {},
) {
  const rig = new CoreRig({
    charges: [{ id: 1, type: 'times-billing', models: ['m'], input: 1 }],
    ...options,
  });
  rig.quotas.grant('acme', 10n ** 12n);
  let reserved: OpenEntry | undefined;
  const reserve = rig.quotas.reserve.bind(rig.quotas);
  rig.quotas.reserve = (write) => reserve(((reserved = write.entry), write));
  rig.upstream({ steps: hello });
  const { path, body: usual } = asked[endpoint];
  const answer = await rig.post(
    { ...usual, ...body },
    { path, headers: { authorization: `Bearer ${demoKey}`, ...headers } },
  );
  expect(rig.faults).toEqual([]);
  const { last } = rig.quotas.items.get('acme') ?? {};
  return { answer, line: rig.logged[0], last, sent: rig.sent[0]?.json, reserved };
}

const claudeCode = {
  'x-claude-code-session-id': '0d1f6a3e-5c2b-4e7a-9b8d-1a2b3c4d5e6f',
  'x-claude-code-agent-id': 'agent-7',
  'x-claude-code-parent-agent-id': 'agent-1',
  'x-claude-code-request-class': 'main',
  'x-claude-code-agent-type': 'Explore',
};
const claudesTags = {
  session: '0d1f6a3e-5c2b-4e7a-9b8d-1a2b3c4d5e6f',
  agent: 'agent-7',
  parent_agent: 'agent-1',
  request_class: 'main',
  agent_type: 'Explore',
};

describe('a call', () => {
  it.each(endpoints)(
    'of %s has its end user and tags in the log line and the close record',
    async (endpoint) => {
      const body = endpoint === 'messages' ? { metadata: { user_id: 'alice' } } : { user: 'alice' };
      const headers = { 'x-relay-tags': 'team=search, env=prod,cost-center=a=b c' };
      const { line, last } = await call(endpoint, { body, headers });
      const whom = { end_user: 'alice', tags: { team: 'search', env: 'prod', 'cost-center': 'a=b c' } };
      expect(line).toMatchObject(whom);
      expect(last).toMatchObject({ endpoint, ...whom });
    },
  );

  it.each(endpoints)('of %s has the details that Claude Code sends among its tags', async (endpoint) => {
    const { line, last } = await call(endpoint, { headers: claudeCode });
    expect(line?.tags).toEqual(claudesTags);
    expect(last?.tags).toEqual(claudesTags);
  });

  it('without an end user or tags records none', async () => {
    const { line, last } = await call('chat', { headers: { 'x-relay-tags': ' ' } });
    for (const each of [line, last]) {
      expect(each?.end_user).toBeUndefined();
      expect(each?.tags).toBeUndefined();
    }
  });

  it.each([
    [{ user: 'u', safety_identifier: 's', metadata: { user_id: 'm' } }, 'm'],
    [{ user: 'u', safety_identifier: 's', metadata: { other: 'm' } }, 's'],
    [{ user: '', safety_identifier: null }, undefined],
  ])('belongs to the most specific end user: %j', async (body, endUser) => {
    for (const endpoint of ['chat', 'responses'] as const)
      expect((await call(endpoint, { body })).last?.end_user).toBe(endUser);
  });

  it('that is rejected logs its end user and tags, too', async () => {
    const headers = { 'x-relay-tags': 'team=search' };
    const limits = { ...defaultSettings.limits, accountRpm: 0 };
    const { line } = await call('chat', { body: { user: 'alice' }, headers, settings: { limits } });
    expect(line).toMatchObject({ end: 'refused', end_user: 'alice', tags: { team: 'search' } });
  });
});

describe('tags', () => {
  const long = 'v'.repeat(64);

  it.each([
    'team',
    'team=',
    '=search',
    'team=search,',
    'team=a,team=b',
    '1team=a',
    'te am=a',
    'team=sea"rch',
    'team=a\\b',
    'team=é',
    `team=${long}v`,
    `${'n'.repeat(33)}=a`,
    'a=1,b=2,c=3,d=4,e=5,f=6',
    ['a', 'b', 'c', 'd'].map((name) => `${name}=${long}`).join(),
  ])('in an invalid form are rejected before anything is charged: %s', async (written) => {
    for (const endpoint of endpoints) {
      const { answer, last, sent } = await call(endpoint, { headers: { 'x-relay-tags': written } });
      expect(answer.status).toBe(400);
      expect(JSON.parse(answer.text).error).toMatchObject({ type: 'invalid_request_error' });
      expect(answer.text).toContain('x-relay-tags');
      expect([last, sent]).toEqual([undefined, undefined]);
    }
  });

  it('from Claude Code are left out if they do not fit, after the client’s own tags', async () => {
    const headers = {
      ...claudeCode,
      'x-claude-code-agent-id': 'x'.repeat(65),
      'x-relay-tags': 'session=mine,a=1',
    };
    expect((await call('messages', { headers })).last?.tags).toEqual({
      session: 'mine',
      a: '1',
      parent_agent: 'agent-1',
      request_class: 'main',
      agent_type: 'Explore',
    });
    const full = ['a', 'b', 'c'].map((name) => `${name}=${long}`).join();
    const { last } = await call('messages', { headers: { ...claudeCode, 'x-relay-tags': full } });
    expect(last?.tags).toEqual({ a: long, b: long, c: long, session: claudesTags.session, agent: 'agent-7' });
  });

  it('add at most 700 bytes to a close record and none to an open entry', async () => {
    const names = ['a', 'b', 'c', 'd', 'e'].map((letter) => letter.repeat(19));
    const written = names.map((name) => `${name}=${'v'.repeat(32)}`).join();
    expect(readTags(`${written}v`, 'x').size).toBe(5);
    expect(() => readTags(`${written}vv`, 'x')).toThrow(InvalidRequest);
    const headers = { 'x-relay-tags': written };
    const [plain, tagged] = [
      await call('chat'),
      await call('chat', { body: { user: '語'.repeat(100) }, headers }),
    ];
    const bytesOf = (value: object | undefined): number => Buffer.byteLength(JSON.stringify(value));
    const sizes = [plain, tagged].map(({ last }) => last && bytesOf(encodeCloseRecord(last)));
    expect(sizes[1]! - sizes[0]!).toBeLessThan(700);
    expect(plain.reserved).toEqual(tagged.reserved);
  });

  it('are in the log line of a lost close, from which it is repaired', async () => {
    const { last } = await call('chat', {
      body: { user: 'alice' },
      headers: { 'x-relay-tags': 'team=search' },
    });
    const write = { account: 'acme', id: last!.id, entry: entry(), releaseSlot: false, closeRecord: last! };
    const line = JSON.stringify({ message: 'settle_lost', ...formatLoss(write) });
    expect(parseLosses(line)[0]?.closeRecord).toEqual(last);
  });
});

describe('an end user', () => {
  const uuid = '0d1f6a3e-5c2b-4e7a-9b8d-1a2b3c4d5e6f';
  const device = 'd'.repeat(64);

  it.each([
    ['alice@example.com', 'alice@example.com'],
    ['', undefined],
    [' \n', undefined],
    ['a\u001b[2Jb', 'a [2Jb'],
    ['😀'.repeat(70), '😀'.repeat(64)],
    ['\ud800x', '\ufffdx'],
    [`user_${'a'.repeat(64)}_account__session_${uuid}`, `user_${'a'.repeat(59)}`],
    [JSON.stringify({ session_id: uuid }), JSON.stringify({ session_id: uuid })],
    // Claude Code's: one name whatever the session.
    [JSON.stringify({ device_id: device, account_uuid: '', session_id: uuid }), device],
    [JSON.stringify({ device_id: device, account_uuid: uuid, session_id: uuid }), uuid],
    [`{"device_id":"${'x'.repeat(5000)}"}`, `{"device_id":"${'x'.repeat(50)}`],
  ])('is shown as written, in 64 characters at most: %j', (written, shown) => {
    expect(showEndUser(written)).toBe(shown);
  });
});

describe('a vendor that requests an end user', () => {
  const hash = /^[0-9a-f]{64}$/;
  const claude = { type: 'anthropic', endpoint: 'https://claude.test/v1' };
  const openai = { endpoint: 'https://api.openai.com/v1' };
  const azure = { type: 'azure', endpoint: 'https://a.openai.azure.com', api_version: '2024-10-21' };
  const metadata = { metadata: { user_id: expect.stringMatching(hash) } };

  it.each([
    ['chat', claude, metadata],
    ['messages', claude, metadata],
    ['chat', openai, { safety_identifier: expect.stringMatching(hash) }],
    ['responses', { ...openai, dialect: 'responses' }, { safety_identifier: expect.stringMatching(hash) }],
    ['messages', { ...openai, dialect: 'responses' }, { safety_identifier: expect.stringMatching(hash) }],
    ['chat', azure, { user: expect.stringMatching(hash) }],
    ['chat', { ...azure, dialect: 'responses' }, { user: expect.stringMatching(hash) }],
  ] as const)('gets the account’s hash from %s, the same each time: %j', async (endpoint, channel, field) => {
    const body = { future_field: 1 };
    const [first, second] = [
      await call(endpoint, { channels: [channel], body }),
      await call(endpoint, { channels: [channel], body: { ...body, temperature: 1 } }),
    ];
    expect(first.sent).toMatchObject(field);
    expect(second.sent).toMatchObject(first.sent!);
    expect(first.answer.headers['x-relay-dropped'] ?? '').not.toMatch(/user|safety|metadata/);
    // The hash comes from the relay, so it is not logged as the client's end user.
    expect(first.last?.end_user).toBeUndefined();
  });

  it.each([
    ['the client names one', claude, { user: 'alice' }, {}],
    ['the setting disables it', claude, {}, { endUsers: { hashAccounts: false } }],
    ['the row drops the field', { ...claude, params: { drop: ['user'] } }, {}, {}],
    ['the server belongs to another vendor', { endpoint: 'https://compatible.test/v1' }, {}, {}],
    ['the channel type does not request it', { type: 'gemini', secret: 'ssm:/relay/relay/x' }, {}, {}],
  ])('does not get the hash if %s', async (_, channel, body, settings) => {
    const { sent, answer } = await call('chat', { channels: [channel], body, settings });
    const ofAccount = (await call('chat', { channels: [claude] })).sent?.['metadata'];
    expect(sent).toBeDefined();
    expect(JSON.stringify(sent)).not.toContain((ofAccount as { user_id: string }).user_id);
    expect(answer.headers['x-relay-dropped']).toBeUndefined();
  });

  it('can tell two accounts apart', async () => {
    const keys = (account: string) => ({ [demoKey]: { row: keyRow({ account }) } });
    const [one, other] = [
      await call('messages', { channels: [claude], keys: keys('acme') }),
      await call('messages', { channels: [claude], keys: keys('other'), charges: [] }),
    ];
    expect(one.sent?.['metadata']).not.toEqual(other.sent?.['metadata']);
    expect(other.sent?.['metadata']).toEqual(metadata.metadata);
  });
});
