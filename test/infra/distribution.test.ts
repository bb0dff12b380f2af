import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { readable, resourcesOf, synthesize } from './synthesize.ts';

interface Behaviour {
  PathPattern?: string;
  TargetOriginId: string;
  CachePolicyId: unknown;
  [property: string]: unknown;
}

interface Distribution {
  Origins: { Id: string; [property: string]: unknown }[];
  CacheBehaviors: Behaviour[];
  DefaultCacheBehavior: Behaviour;
}

const cachingDisabled = '4135ea2d-6df8-44a3-9df3-4b5a84be39ad';

const { template } = synthesize({ originSecrets: [1, 2] });
const [[, resource] = []] = resourcesOf(template, 'AWS::CloudFront::Distribution');
const distribution = resource?.Properties.DistributionConfig as Distribution;
const behaviours = [...distribution.CacheBehaviors, distribution.DefaultCacheBehavior];

/** `chat` or `catalog`: the function whose URL the behaviour leads to. */
function target(behaviour: Behaviour): string | undefined {
  const origin = distribution.Origins.find((candidate) => candidate.Id === behaviour.TargetOriginId);
  return /Functions([a-z]+)LiveFunctionUrl/.exec(JSON.stringify(origin?.DomainName))?.[1];
}

describe('the distribution', () => {
  test('sends each path to its function and caches nothing that differs between callers', () => {
    const routes = behaviours.map((behaviour) => [
      behaviour.PathPattern ?? 'else',
      target(behaviour),
      behaviour.CachePolicyId === cachingDisabled ? 'never kept' : 'kept',
    ]);
    expect(routes).toEqual([
      ['/v1/chat/*', 'chat', 'never kept'],
      ['/v1/embeddings*', 'chat', 'never kept'],
      ['/v1/responses*', 'responses', 'never kept'],
      ['/v1/messages*', 'messages', 'never kept'],
      ['/v1/models*', 'catalog', 'kept'],
      ['/v1/charge', 'catalog', 'kept'],
      ['/v1/plans', 'catalog', 'kept'],
      ['/v1/account/keys*', 'selfservice', 'never kept'],
      ['/v1/account/top-ups', 'selfservice', 'never kept'],
      ['/v1/account/codes', 'selfservice', 'never kept'],
      ['/v1/account*', 'catalog', 'never kept'],
      ['/hooks/payments/stripe', 'payments', 'never kept'],
      ['/health', 'catalog', 'kept'],
      ['else', 'catalog', 'never kept'],
    ]);
  });

  test('caches lists for at most 5 s, separately by query, browser origin and form only', () => {
    const policies = resourcesOf(template, 'AWS::CloudFront::CachePolicy');
    expect(policies).toHaveLength(1);
    expect(policies[0]?.[1].Properties.CachePolicyConfig).toMatchObject({
      MinTTL: 0,
      DefaultTTL: 5,
      MaxTTL: 5,
      ParametersInCacheKeyAndForwardedToOrigin: {
        QueryStringsConfig: { QueryStringBehavior: 'all' },
        HeadersConfig: { HeaderBehavior: 'whitelist', Headers: ['Origin', 'x-relay-list-form'] },
        CookiesConfig: { CookieBehavior: 'none' },
        EnableAcceptEncodingBrotli: false,
        EnableAcceptEncodingGzip: false,
      },
    });
    for (const behaviour of behaviours.filter(({ CachePolicyId }) => CachePolicyId !== cachingDisabled)) {
      expect(readable(behaviour.CachePolicyId)).toBe(`<${policies[0]?.[0]}>`);
    }
  });

  test('waits up to 120 s for bytes and sends the newest origin secret to the functions', () => {
    expect(distribution.Origins).toHaveLength(6);
    for (const origin of distribution.Origins) {
      expect(origin.CustomOriginConfig).toMatchObject({
        OriginReadTimeout: 120,
        OriginProtocolPolicy: 'https-only',
      });
      const [header] = origin.OriginCustomHeaders as { HeaderName: string; HeaderValue: unknown }[];
      expect(header?.HeaderName).toBe('x-relay-origin');
      expect(readable(header?.HeaderValue)).toMatch(
        /^\{\{resolve:secretsmanager:<OriginSecret2\w+>:SecretString:::\}\}$/,
      );
    }
  });

  test('forwards to functions the host name that the client used and the form in which it reads lists', () => {
    const [[logicalId, edgeFunction] = []] = resourcesOf(template, 'AWS::CloudFront::Function');
    for (const behaviour of behaviours) {
      const [association, ...others] = behaviour.FunctionAssociations as {
        EventType: string;
        FunctionARN: unknown;
      }[];
      expect(others).toEqual([]);
      expect(association?.EventType).toBe('viewer-request');
      expect(readable(association?.FunctionARN)).toBe(`<${logicalId}.FunctionARN>`);
    }
    const host = { value: 'api.example.com' };
    const forged = { 'x-forwarded-host': { value: 'forged' }, 'x-relay-list-form': { value: 'forged' } };
    const code = `${String(edgeFunction?.Properties.FunctionCode)}; handler(event)`;
    for (const [form, sent] of [
      ['usual', {}],
      ['messages', { 'anthropic-version': { value: '2023-06-01' } }],
      ['messages', { 'x-api-key': { value: 'sk-x' } }],
    ] as const) {
      const event = { request: { headers: { host, ...sent, ...forged } } };
      expect(runInNewContext(code, { event })).toEqual({
        headers: { host, ...sent, 'x-forwarded-host': host, 'x-relay-list-form': { value: form } },
      });
    }
  });
});
