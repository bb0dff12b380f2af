/** The public address: a CloudFront distribution that sends each path to the function or server that answers it. */
import { Duration, Stack, Token } from 'aws-cdk-lib';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import { configureBucketEncryption } from './encryption-keys.ts';
import type { ICertificate } from 'aws-cdk-lib/aws-certificatemanager';
import {
  AllowedMethods,
  CacheCookieBehavior,
  CacheHeaderBehavior,
  CachePolicy,
  CacheQueryStringBehavior,
  Distribution,
  Function as EdgeFunction,
  FunctionCode,
  FunctionEventType,
  FunctionRuntime,
  HttpVersion,
  OriginRequestPolicy,
  ResponseHeadersPolicy,
  SecurityPolicyProtocol,
  ViewerProtocolPolicy,
  type BehaviorOptions,
  type ErrorResponse,
  type IOrigin,
  OriginProtocolPolicy,
} from 'aws-cdk-lib/aws-cloudfront';
import { FunctionUrlOrigin, HttpOrigin, VpcOrigin } from 'aws-cdk-lib/aws-cloudfront-origins';
import type { IApplicationLoadBalancer } from 'aws-cdk-lib/aws-elasticloadbalancingv2';
import {
  AaaaRecord,
  ARecord,
  RecordTarget,
  type IAliasRecordTarget,
  type IHostedZone,
} from 'aws-cdk-lib/aws-route53';
import { type IBucket, BlockPublicAccess, Bucket, ObjectOwnership } from 'aws-cdk-lib/aws-s3';
import { CloudFrontTarget } from 'aws-cdk-lib/aws-route53-targets';
import { Construct, type IDependable } from 'constructs';
import { RetentionDays } from 'aws-cdk-lib/aws-logs';
import { type FunctionName, defaultFunction, routes } from './function-descriptions.ts';
import { listHeaders } from '../../../shared/endpoints/routes.ts';
import { keepAfterCreation, type RelayFunction, type RelayFunctions } from './relay-functions.ts';
import { originSecretHeader } from './numbered-secrets.ts';

/** The public host name. Replaces the one of CloudFront. */
export interface RelayDomain {
  /** `api.example.com`. */
  name: string;
  /** A certificate for the name: in us-east-1 for CloudFront, in the relay's region for an API. */
  certificate: ICertificate;
  /** The zone for the records of the front door (A, and AAAA for CloudFront). Without it, create them yourself. */
  hostedZone?: IHostedZone;
}

/** The origins of the distribution. Each checks the origin secret, because its address is public. */
export interface RelayOrigins {
  /** The origin of a function's paths. Functions that share an origin share the object. */
  of(name: FunctionName): IOrigin;
  /** The distribution must wait for these. CloudFormation would otherwise create both at once, and the origin would fail at first. */
  dependencies: readonly IDependable[];
}

/** The parts that all origins have. */
const buildOriginSettings = (sentOriginSecret: string) => ({
  readTimeout,
  keepaliveTimeout: Duration.seconds(60),
  customHeaders: { [originSecretHeader]: sentOriginSecret },
});

/** Uses the URL of each function. */
export function useFunctionUrls(functions: RelayFunctions, sentOriginSecret: string): RelayOrigins {
  const made = new Map<FunctionName, IOrigin>();
  return {
    of(name) {
      const origin =
        made.get(name) ?? new FunctionUrlOrigin(functions.url(name), buildOriginSettings(sentOriginSecret));
      made.set(name, origin);
      return origin;
    },
    // The permissions of a URL belong to the alias.
    dependencies: functions.answeringAliases().map(([, live]) => live),
  };
}

/** Uses API Gateway for all paths, with its stage as prefix. */
export function useApiGateway(
  api: IDependable & { host: string; path: string },
  sentOriginSecret: string,
): RelayOrigins {
  const origin = new HttpOrigin(api.host, {
    ...buildOriginSettings(sentOriginSecret),
    protocolPolicy: OriginProtocolPolicy.HTTPS_ONLY,
    originPath: api.path,
  });
  return { of: () => origin, dependencies: [api] };
}

/**
 * Uses servers behind a private load balancer. CloudFront reaches it through network interfaces in the VPC, so plain HTTP is private.
 * Functions that exist nevertheless have their own URLs.
 */
export function usePrivateBalancer(
  { balancer, service }: { balancer: IApplicationLoadBalancer; service: IDependable },
  functions: RelayFunctions,
  sentOriginSecret: string,
): RelayOrigins {
  const urls = useFunctionUrls(functions, sentOriginSecret);
  const protocolPolicy = OriginProtocolPolicy.HTTP_ONLY;
  const origin = VpcOrigin.withApplicationLoadBalancer(balancer, {
    ...buildOriginSettings(sentOriginSecret),
    protocolPolicy,
  });
  return {
    of: (name) => (functions.byName.has(name) ? urls.of(name) : origin),
    dependencies: [service, ...urls.dependencies],
  };
}

/** Gives a function an origin of its own, independent of the other paths. */
interface ConsoleOrigin {
  origin: IOrigin;
  live: IDependable;
}

export const createConsoleOrigin = (
  { live, url }: RelayFunction,
  sentOriginSecret: string,
): ConsoleOrigin => {
  if (live === undefined || url === undefined) throw new Error('the console has no URL');
  return { live, origin: new FunctionUrlOrigin(url, buildOriginSettings(sentOriginSecret)) };
};

interface RelayDistributionProps {
  relayName: string;
  origins: RelayOrigins;
  domain?: RelayDomain;
  /** ARN of a WAF ACL for CloudFront. */
  webAclArn?: string | undefined;
  console?: ConsoleOrigin | undefined;
  /** Bucket of standard logs. */
  accessLog?: IBucket | undefined;
}

/**
 * CloudFront's longest read time-out without a raised quota. Heartbeats come more often; this helps if an environment is
 * slow for a while.
 */
const readTimeout = Duration.seconds(120);

/** Names the kind of client, because some read lists in their own form. Only the edge function sets it. */
const listFormHeader = 'x-relay-list-form';

/** Copies the client's host name to another header, because `host` must be the origin's, and sets the kind of client. */
const hostFunction = `function handler(event) {
  var request = event.request;
  var headers = request.headers;
  headers['x-forwarded-host'] = { value: headers.host.value };
  headers['${listFormHeader}'] = { value: ${listHeaders.map((name) => `headers['${name}']`).join(' || ')} ? 'messages' : 'usual' };
  return request;
}
`;

export class RelayDistribution extends Construct {
  readonly distribution: Distribution;
  /** The public host name. */
  readonly host: string;

  constructor(scope: Construct, id: string, props: RelayDistributionProps) {
    super(scope, id);
    const behaviour = this.behaviours(props);
    this.distribution = new Distribution(this, 'Distribution', {
      comment: `${props.relayName}: OpenAI-compatible relay`,
      httpVersion: HttpVersion.HTTP2_AND_3,
      errorResponses: buildUncachedErrors(),
      defaultBehavior: behaviour(props.origins.of(defaultFunction), false),
      additionalBehaviors: {
        ...Object.fromEntries(
          routes.map((route) => [route.path, behaviour(props.origins.of(route.function), route.cached)]),
        ),
        ...(props.console && { '/console*': behaviour(props.console.origin, false) }),
      },
      ...(props.webAclArn !== undefined && { webAclId: props.webAclArn }),
      // One prefix per relay, for shared buckets. Paths and queries hold no keys, and headers are not logged.
      ...(props.accessLog && { logBucket: props.accessLog, logFilePrefix: `${props.relayName}/` }),
      ...(props.domain && {
        domainNames: [props.domain.name],
        certificate: props.domain.certificate,
        // Only a certificate of ours can have a minimum TLS version. CloudFront fixes that of its
        // default one.
        minimumProtocolVersion: SecurityPolicyProtocol.TLS_V1_2_2021,
      }),
    });
    this.distribution.node.addDependency(
      ...props.origins.dependencies,
      ...(props.console ? [props.console.live] : []),
    );
    this.host = props.domain?.name ?? this.distribution.distributionDomainName;
    const { name, hostedZone: zone } = props.domain ?? {};
    if (name !== undefined && zone !== undefined)
      addressRecords(this, { zone, name, target: new CloudFrontTarget(this.distribution) });
  }

  private behaviours(props: RelayDistributionProps): (origin: IOrigin, cached: boolean) => BehaviorOptions {
    const cacheForSeconds = this.shortCachePolicy(props.relayName);
    const keepHost = new EdgeFunction(this, 'KeepHost', {
      functionName: nameAccountWide(this, props.relayName, 'keep-host'),
      code: FunctionCode.fromInline(hostFunction),
      runtime: FunctionRuntime.JS_2_0,
      comment: 'Sets x-forwarded-host',
    });
    return (origin, cached) => ({
      origin,
      // Plain HTTP fails instead of redirecting, so that a client notices that it sent its key unencrypted.
      viewerProtocolPolicy: ViewerProtocolPolicy.HTTPS_ONLY,
      // Allows all methods, so that a wrong one gets the relay's JSON error, not CloudFront's HTML.
      allowedMethods: AllowedMethods.ALLOW_ALL,
      cachePolicy: cached ? cacheForSeconds : CachePolicy.CACHING_DISABLED,
      originRequestPolicy: OriginRequestPolicy.ALL_VIEWER_EXCEPT_HOST_HEADER,
      // Includes Strict-Transport-Security for a year.
      responseHeadersPolicy: ResponseHeadersPolicy.SECURITY_HEADERS,
      compress: false,
      functionAssociations: [{ function: keepHost, eventType: FunctionEventType.VIEWER_REQUEST }],
    });
  }

  private shortCachePolicy(relayName: string): CachePolicy {
    return new CachePolicy(this, 'FewSeconds', {
      cachePolicyName: nameAccountWide(this, relayName, 'few-seconds'),
      comment: `${relayName}: lists that are the same for everybody`,
      minTtl: Duration.seconds(0),
      defaultTtl: Duration.seconds(5),
      maxTtl: Duration.seconds(5),
      queryStringBehavior: CacheQueryStringBehavior.all(),
      cookieBehavior: CacheCookieBehavior.none(),
      // Answers differ by browser origin, and Anthropic's clients get another form.
      headerBehavior: CacheHeaderBehavior.allowList('Origin', listFormHeader),
    });
  }
}

interface Addressed {
  zone: IHostedZone;
  name: string;
  target: IAliasRecordTarget;
  /** Default: true. */
  ipv6?: boolean;
}

/** Creates the DNS records of the front door. */
export function addressRecords(scope: Construct, { zone, name, target, ipv6 = true }: Addressed): void {
  const zoneName = zone.zoneName.replace(/\.$/, '');
  // CDK would append the zone's name to a name outside the zone, and create a useless record.
  if (!Token.isUnresolved(zoneName) && name !== zoneName && !name.endsWith(`.${zoneName}`))
    throw new Error(`domain ${name} is not in the hosted zone ${zoneName}`);
  const record = { zone, recordName: `${name}.`, target: RecordTarget.fromAlias(target) };
  void new ARecord(scope, 'Address', record);
  if (ipv6) void new AaaaRecord(scope, 'AddressIpv6', record);
}

/**
 * A name that must be unique in the account over all regions. CDK's default comes from the construct's path, which is the same for
 * all stages of an app.
 */
const nameAccountWide = (scope: Construct, relayName: string, purpose: string): string =>
  `${relayName}-${Stack.of(scope).region}-${purpose}`;

/** By default CloudFront caches errors for 10 s for all callers, even on paths without caching. */
function buildUncachedErrors(): ErrorResponse[] {
  const statuses = [400, 403, 404, 405, 414, 416, 500, 501, 502, 503, 504];
  return statuses.map((httpStatus) => ({ httpStatus, ttl: Duration.seconds(0) }));
}

/**
 * The bucket of CloudFront's standard logs: client addresses, paths, times, statuses. Only the account can read it.
 * @param props `logRetention` defaults to one month, like that of functions
 */
export const createAccessLogBucket = (
  scope: Construct,
  {
    disposable,
    logRetention: days,
    key,
  }: { disposable: boolean; logRetention?: RetentionDays; key?: IKey | undefined },
): Bucket =>
  new Bucket(new Construct(scope, 'AccessLog'), 'Bucket', {
    blockPublicAccess: BlockPublicAccess.BLOCK_ALL,
    // CloudFront grants itself write access through an ACL. The account owns the objects.
    objectOwnership: ObjectOwnership.BUCKET_OWNER_PREFERRED,
    ...configureBucketEncryption(key),
    enforceSSL: true,
    lifecycleRules:
      days === RetentionDays.INFINITE
        ? []
        : [
            {
              expiration: Duration.days(days ?? 30),
              abortIncompleteMultipartUploadAfter: Duration.days(1),
            },
          ],
    removalPolicy: keepAfterCreation(disposable),
    autoDeleteObjects: disposable,
  });
