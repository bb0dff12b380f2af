import { runInNewContext } from 'node:vm';
import { beforeAll, describe, expect, test } from 'vitest';
import { readable, resourcesOf, synthesize, type Template } from './synthesize.ts';

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
  CustomErrorResponses: { ErrorCode: number; ErrorCachingMinTTL: number }[];
  HttpVersion: string;
}

const cachingDisabled = '4135ea2d-6df8-44a3-9df3-4b5a84be39ad';
const allViewerExceptHost = 'b689b0a8-53d0-40ab-baf2-68738e2966ac';

let template: Template;
let distribution: Distribution;
let behaviours: Behaviour[];

beforeAll(() => {
  ({ template } = synthesize({ originSecrets: [1, 2] }));
  const [[, resource] = []] = resourcesOf(template, 'AWS::CloudFront::Distribution');
  distribution = resource?.Properties.DistributionConfig as Distribution;
  behaviours = [...distribution.CacheBehaviors, distribution.DefaultCacheBehavior];
});

/** `chat` or `catalog`: the function whose URL the behaviour leads to. */
function target(behaviour: Behaviour): string | undefined {
  const origin = distribution.Origins.find((candidate) => candidate.Id === behaviour.TargetOriginId);
  return /Functions([a-z]+)LiveFunctionUrl/.exec(JSON.stringify(origin?.DomainName))?.[1];
}

describe('the distribution', () => {
  test('sends each path to its function and keeps nothing of what differs between callers', () => {
    const routes = behaviours.map((behaviour) => [
      behaviour.PathPattern ?? 'else',
      target(behaviour),
      behaviour.CachePolicyId === cachingDisabled ? 'never kept' : 'kept',
    ]);
    expect(routes).toEqual([
      ['/v1/chat/*', 'chat', 'never kept'],
      ['/v1/responses*', 'responses', 'never kept'],
      ['/v1/models*', 'catalog', 'kept'],
      ['/v1/charge', 'catalog', 'kept'],
      ['/v1/plans', 'catalog', 'kept'],
      ['/v1/account*', 'catalog', 'never kept'],
      ['/hooks/payments/stripe', 'payments', 'never kept'],
      ['/health', 'catalog', 'kept'],
      ['else', 'catalog', 'never kept'],
    ]);
  });

  test('keeps lists for 5 s at most, apart by query and by browser origin alone', () => {
    const policies = resourcesOf(template, 'AWS::CloudFront::CachePolicy');
    expect(policies).toHaveLength(1);
    expect(policies[0]?.[1].Properties.CachePolicyConfig).toMatchObject({
      MinTTL: 0,
      DefaultTTL: 5,
      MaxTTL: 5,
      ParametersInCacheKeyAndForwardedToOrigin: {
        QueryStringsConfig: { QueryStringBehavior: 'all' },
        HeadersConfig: { HeaderBehavior: 'whitelist', Headers: ['Origin'] },
        CookiesConfig: { CookieBehavior: 'none' },
        EnableAcceptEncodingBrotli: false,
        EnableAcceptEncodingGzip: false,
      },
    });
    for (const behaviour of behaviours.filter(({ CachePolicyId }) => CachePolicyId !== cachingDisabled)) {
      expect(readable(behaviour.CachePolicyId)).toBe(`<${policies[0]?.[0]}>`);
    }
  });

  test('tells browsers on every path to come by https alone, by a policy that CloudFront manages', () => {
    const all = [distribution.DefaultCacheBehavior, ...behaviours] as { ResponseHeadersPolicyId?: unknown }[];
    for (const { ResponseHeadersPolicyId } of all)
      expect(ResponseHeadersPolicyId).toBe('67f7725c-6f97-4210-82d7-5512b31e9d03');
  });

  test('keeps no error: CloudFront would for 10 s', () => {
    const cacheable = [400, 403, 404, 405, 414, 416, 500, 501, 502, 503, 504];
    expect(distribution.CustomErrorResponses).toEqual(
      cacheable.map((status) => ({ ErrorCode: status, ErrorCachingMinTTL: 0 })),
    );
  });

  test('passes every method and header on, uncompressed, over HTTPS alone', () => {
    for (const behaviour of behaviours) {
      expect(behaviour).toMatchObject({
        AllowedMethods: expect.arrayContaining(['GET', 'POST', 'OPTIONS', 'DELETE', 'PUT', 'PATCH', 'HEAD']),
        OriginRequestPolicyId: allViewerExceptHost,
        Compress: false,
        ViewerProtocolPolicy: 'https-only',
      });
    }
    expect(distribution.HttpVersion).toBe('http2and3');
  });

  test('waits for 120 s of silence and shows the functions the newest origin secret', () => {
    expect(distribution.Origins).toHaveLength(4);
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

  test('tells functions the host name that the client used', () => {
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
    const event = {
      request: { headers: { host: { value: 'api.example.com' }, 'x-forwarded-host': { value: 'forged' } } },
    };
    const code = `${String(edgeFunction?.Properties.FunctionCode)}; handler(event)`;
    expect(runInNewContext(code, { event })).toEqual({
      headers: { host: { value: 'api.example.com' }, 'x-forwarded-host': { value: 'api.example.com' } },
    });
  });
});

describe('the log at the edge', () => {
  const loggingOf = ({ Resources }: Template) =>
    Object.values(Resources)
      .filter(({ Type }) => Type === 'AWS::CloudFront::Distribution')
      .map(({ Properties }) => (Properties.DistributionConfig as { Logging?: { Bucket: unknown } }).Logging);
  const ownBuckets = (made: Template) =>
    resourcesOf(made, 'AWS::S3::Bucket').filter(([id]) => id.startsWith('AccessLog'));

  test('is not written unless it is asked for', () => {
    expect(loggingOf(template)).toEqual([undefined]);
    expect(ownBuckets(template)).toEqual([]);
  });

  test('goes to a private bucket that lets CloudFront write, expires with the log of functions and outlives the stack', () => {
    const { template: made } = synthesize({ accessLog: true, logRetentionDays: 90 });
    const [[id, bucket] = []] = ownBuckets(made);
    const [logging] = loggingOf(made);
    expect(logging).toEqual({ Bucket: { 'Fn::GetAtt': [id, 'RegionalDomainName'] }, Prefix: 'relay/' });
    expect(bucket?.Properties).toMatchObject({
      OwnershipControls: { Rules: [{ ObjectOwnership: 'BucketOwnerPreferred' }] },
      PublicAccessBlockConfiguration: { BlockPublicAcls: true, RestrictPublicBuckets: true },
      LifecycleConfiguration: { Rules: [{ ExpirationInDays: 90, Status: 'Enabled' }] },
    });
    expect(bucket).toMatchObject({ DeletionPolicy: 'Retain', UpdateReplacePolicy: 'Retain' });
  });

  test('goes with a trial', () => {
    const [[, bucket] = []] = ownBuckets(synthesize({ accessLog: true, disposable: true }).template);
    expect(bucket?.DeletionPolicy).toBe('Delete');
  });

  test('goes to the bucket that is named, below the name of the stack', () => {
    const { template: made } = synthesize({ stage: 'prod', accessLog: 'company-edge-logs' });
    expect(loggingOf(made)).toEqual([
      { Bucket: 'company-edge-logs.s3.amazonaws.com', Prefix: 'relay-prod/' },
    ]);
    expect(ownBuckets(made)).toEqual([]);
  });
});
