import { describe, expect, it } from 'vitest';
import { compile, channel } from './rows.ts';
import { emptyRows } from '../../../shared/config/rows/read-table.ts';
import {
  findReferenceProblem,
  type ReferenceRules,
  type SecretUse,
} from '../../../shared/config/rows/secret-reference.ts';

const host = 'api.example.com';
const problemOf = (reference: string, rules: ReferenceRules, use: Partial<SecretUse> = {}) =>
  findReferenceProblem({ row: 'a', at: 'secret', purpose: 'channels', host, ...use, reference }, rules);

describe('a reference to a secret', () => {
  it.each([
    'ssm:/relay/relay/openai',
    'ssm:/relay/relay-test/team-a/openai',
    'secretsmanager:relay/openai',
    'ssm:/relay/relay/channels/api.example.com/openai',
    'secretsmanager:relay/channels/api.example.com/team-a/openai',
    // Written before paths contained a host.
    'ssm:/relay/relay/channels/openai',
    'ssm:/relay/relay/channels/team-a/openai',
  ])('is usable: %s', (reference) => {
    expect(problemOf(reference, { local: false })).toBeUndefined();
  });

  it.each<[string, string, Partial<SecretUse>]>([
    ['another purpose', 'ssm:/relay/relay/payments/stripe', {}],
    ['another purpose', 'ssm:/relay/relay/payments/api.example.com/stripe', {}],
    ['another purpose', 'secretsmanager:relay/console/oidc', {}],
    ['another purpose', 'ssm:/relay/relay/canary/key', {}],
    ['another purpose', 'ssm:/relay/relay/search/api.example.com/key', {}],
    ['another purpose', 'ssm:/relay/relay/channels/api.example.com/key', { purpose: 'search' }],
    ['another purpose', 'ssm:/relay/relay/payments/links', { purpose: 'alerts', host: undefined }],
    ['another host', 'ssm:/relay/relay/channels/evil.example/key', {}],
    ['another host', 'ssm:/relay/relay/channels/api.example.com/key', { host: 'api.example.com:8443' }],
    ['another host', 'ssm:/relay/relay/channels/api.example.com/key', { host: 'xapi.example.com' }],
    [
      'another host',
      'ssm:/relay/relay/payments/api.stripe.com/key',
      { purpose: 'payments', host: 'evil.example' },
    ],
  ])('is rejected (%s): %s', (why, reference, use) => {
    const problem = problemOf(reference, { local: false }, use);
    expect(problem).toContain(why);
    expect(problem).toContain(`secret new ${use.purpose ?? 'channels'}/`);
  });

  it('without a purpose is usable where it was used before, and nowhere else', () => {
    const reference = 'ssm:/relay/relay/openai';
    const oldUses = new Set([JSON.stringify(['channels', 'a', reference, host])]);
    expect(problemOf(reference, { local: false, oldUses })).toBeUndefined();
    for (const other of [{ host: 'evil.example' }, { purpose: 'search' as const }])
      expect(problemOf(reference, { local: false, oldUses }, other)).toContain('without a purpose');
    expect(problemOf(reference, { local: false, oldUses: new Set() })).toContain('without a purpose');
  });

  it('is usable from the environment on a local stack only', () => {
    expect(problemOf('env:OPENAI_API_KEY', { local: true })).toBeUndefined();
    expect(problemOf('env:OPENAI_API_KEY', { local: false })).toContain('only works on a local stack');
  });

  it("is usable from the variables that the stack's owner listed, where a final `*` matches any ending", () => {
    const rules = { local: true, envSecrets: ['OPENAI_API_KEY', 'TEAM_*'] };
    for (const name of ['OPENAI_API_KEY', 'TEAM_', 'TEAM_KEY'])
      expect(problemOf(`env:${name}`, rules)).toBeUndefined();
    for (const name of ['HOME', 'OPENAI_API_KEY_2', 'XTEAM_KEY', 'SEAL_KEYS'])
      expect(problemOf(`env:${name}`, rules)).toContain(`RELAY_ENV_SECRETS=${name} to allow it`);
    expect(problemOf('env:skcanary123', rules)).not.toContain('canary');
  });

  it('is usable from a variable listed for a purpose or a host in that purpose or host only', () => {
    const envSecrets = ['*', 'payments/STRIPE_*', 'channels/api.example.com/BOUND'];
    const rules = { local: true, envSecrets };
    expect(
      problemOf('env:STRIPE_KEY', rules, { purpose: 'payments', host: 'api.stripe.com' }),
    ).toBeUndefined();
    expect(problemOf('env:STRIPE_KEY', rules)).toContain('rows cannot read');
    expect(problemOf('env:BOUND', rules)).toBeUndefined();
    expect(problemOf('env:BOUND', rules, { host: 'evil.example' })).toContain('rows cannot read');
  });

  it('invalidates a row that names another variable', () => {
    const { results, snapshot } = compile(
      { channels: [channel({ secret: 'env:HOME' })] },
      { local: true, envSecrets: [] },
    );
    expect(results[0]?.problem).toContain('RELAY_ENV_SECRETS=HOME');
    expect(snapshot.channels).toEqual([]);
  });

  it.each([
    'ssm:/other/openai',
    'ssm:/relay/openai',
    'ssm:/relay/../x/y z',
    'secretsmanager:openai',
    'env:',
    'env:A B',
    'plain',
  ])('is invalid: %s', (reference) => {
    expect(problemOf(reference, { local: true })).toMatch(/^found /);
  });
});

describe('a secret with another purpose', () => {
  const stripe = {
    live: true,
    webhook_secret: ['ssm:/relay/relay/hook', 'ssm:/relay/relay/hook-2'],
    link_secret: 'secretsmanager:relay/links',
    rates: { usd: 7 },
    checkout: { secret_key: 'ssm:/relay/relay/stripe', currency: 'usd' },
  };
  const settings = [
    { name: 'payments', value: { stripe } },
    { name: 'alerts', value: { webhook: 'https://ops.example.com/', secret: 'ssm:/relay/relay/alerts' } },
    { name: 'search', value: { type: 'tavily', secret: 'ssm:/relay/relay/tavily' } },
  ];
  const references = [
    'ssm:/relay/relay/hook',
    'ssm:/relay/relay/hook-2',
    'secretsmanager:relay/links',
    'ssm:/relay/relay/stripe',
    'ssm:/relay/relay/alerts',
    'ssm:/relay/relay/tavily',
    'ssm:/relay/relay/oidc',
    'ssm:/relay/relay/payments/any',
  ];
  const owners = new Map([['ssm:/relay/relay/oidc', 'console'] as const]);

  it.each(references)(
    'invalidates a channel that names it, whose last valid version keeps serving: %s',
    (secret) => {
      const good = channel({ id: 'a', secret: 'ssm:/relay/relay/vendor' });
      const bad = {
        ...good,
        endpoint: 'https://evil.example/v1',
        secret: ['ssm:/relay/relay/vendor', secret],
      };
      const { results, snapshot } = compile(
        { channels: [bad], settings },
        { owners, earlier: { ...emptyRows, channels: [good] } },
      );
      expect(results[0]?.problem).toContain('found a secret of ');
      expect(snapshot.channels).toMatchObject([
        { endpoint: good.endpoint, secret: 'ssm:/relay/relay/vendor' },
      ]);
    },
  );

  it('invalidates the channel even while its owner row is invalid or has just dropped it', () => {
    const [payments] = settings;
    const bad = { ...payments, value: { stripe: { ...stripe, rates: 'none' } } };
    for (const rows of [[bad], []])
      for (const secret of ['ssm:/relay/relay/stripe', 'secretsmanager:relay/links']) {
        const { results } = compile(
          { channels: [channel({ secret })], settings: rows },
          { earlier: { ...emptyRows, settings: [payments] } },
        );
        expect(results[0]?.problem).toContain('found a secret of payments');
      }
  });

  it('invalidates search and alerts that name a payments secret, while payments keep working', () => {
    const { results, snapshot } = compile({
      settings: [
        settings[0],
        { name: 'alerts', value: { secret: 'secretsmanager:relay/links' } },
        { name: 'search', value: { type: 'tavily', secret: 'ssm:/relay/relay/hook' } },
      ],
    });
    expect(results.map(({ problem }) => problem?.slice(0, 42))).toEqual([
      undefined,
      'value.secret: found a secret of payments, ',
      'value.secret: found a secret of payments, ',
    ]);
    expect(snapshot.settings.payments).toBeDefined();
  });

  it('may not be sent to another host, even by its own setting', () => {
    const key = 'ssm:/relay/relay/payments/api.stripe.com/key';
    const sent = (endpoint: string) => {
      const checkout = { secret_key: key, currency: 'usd', endpoint };
      return compile({ settings: [{ name: 'payments', value: { stripe: { ...stripe, checkout } } }] })
        .results[0];
    };
    expect(sent('https://api.stripe.com')?.problem).toBeUndefined();
    expect(sent('https://evil.example')?.problem).toContain(
      'found a secret stored for another host than evil.example',
    );
    const search = (endpoint: string) => ({
      type: 'searxng',
      endpoint,
      secret: 'ssm:/relay/relay/search/s.example.com/k',
    });
    const { results } = compile({
      settings: [{ name: 'search', value: search('https://evil.example') }],
    });
    expect(results[0]?.problem).toContain('found a secret stored for another host than evil.example');
  });
});

describe('a secret path without a purpose', () => {
  it('keeps working and is marked, in channels and settings', () => {
    const { results, snapshot } = compile({
      channels: [channel({ id: 'old', secret: ['ssm:/relay/relay/a', 'secretsmanager:relay/b'] })],
      settings: [{ name: 'search', value: { type: 'tavily', secret: 'ssm:/relay/relay/tavily' } }],
    });
    expect(snapshot.channels).toHaveLength(1);
    expect(snapshot.settings.search).toBeDefined();
    for (const { warning } of results) expect(warning).toContain('secret move');
  });

  it('is not marked once it names purpose and host', () => {
    const row = channel({ endpoint: undefined, type: 'anthropic' });
    const secret = 'ssm:/relay/relay/channels/api.anthropic.com/key';
    const { results } = compile({ channels: [{ ...row, secret }] });
    expect(results[0]?.warning ?? '').not.toContain('secret move');
    expect(compile({ channels: [{ ...row, type: 'gemini', secret }] }).results[0]?.problem).toContain(
      'another host',
    );
  });
});

describe('a secret value typed into a row', () => {
  const canary = 'sk-proj-CANARYCANARYCANARY12345';

  it('is rejected with instructions for storing it', () => {
    const { results } = compile({ channels: [channel({ secret: canary })] });
    expect(results[0]?.problem).toContain('npx --no relay-ops secret new');
  });

  it.each([
    ['as the secret', { secret: canary }],
    ['in a list of secrets', { secret: ['ssm:/relay/relay/a', canary] }],
    ['in a bad list of secrets', { secret: [canary, 5] }],
    ['in a map as secret', { secret: { value: canary } }],
    ['after a prefix', { secret: `env:${canary}` }],
    ['as an attribute that does not exist', { api_key: canary }],
    ['as an attribute name', { [canary]: true }],
    ['as the endpoint', { endpoint: canary }],
    ['in the endpoint', { endpoint: `https://user:${canary}@api.example.com/v1` }],
    ['in the query of the endpoint', { endpoint: `https://api.example.com/v1?key=${canary}` }],
    ['as a model', { models: [`${canary} `, '?'] }],
    ['as a number', { priority: canary }],
    ['in params', { params: { set: { key: new Set([canary]) }, max_output_tokens: canary } }],
    ['as the type', { type: canary }],
    ['as a header in the mapper', { mapper: { [`Bearer ${canary}`]: 5 } }],
  ])('is never repeated: %s', (_case, attributes) => {
    const { results } = compile({ channels: [channel(attributes)] }, { local: true });
    expect(results[0]?.problem).toBeTypeOf('string');
    expect(JSON.stringify(results)).not.toContain('CANARY');
  });
});
