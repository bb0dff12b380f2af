/**
 * A REST API of API Gateway before the functions: in the region, behind CloudFront or by itself, or inside VPCs alone. It streams
 * what functions stream, and calls their alias `live`, so that deployments shift its calls too. Must never be edge-optimized: a
 * stream would be cut after 30 s of silence (API Gateway, "Stream the integration response").
 */
import { createHash } from 'node:crypto';
import { Aws, Stack } from 'aws-cdk-lib';
import {
  CfnBasePathMapping,
  CfnDeployment,
  CfnDomainName,
  CfnRestApi,
  CfnStage,
} from 'aws-cdk-lib/aws-apigateway';
import { CfnPermission } from 'aws-cdk-lib/aws-lambda';
import { CfnWebACLAssociation } from 'aws-cdk-lib/aws-wafv2';
import { Construct } from 'constructs';
import { addressRecords, type RelayDomain } from './distribution.ts';
import {
  defaultFunction,
  functionDescriptions,
  type FunctionName,
  compilePattern,
  routes,
} from './function-descriptions.ts';
import type { RelayFunctions } from './relay-functions.ts';

/** Part of the API's own addresses. No path of the relay begins so, and functions take it away where they see it. */
const stageName = 'relay';

/**
 * The origin that functions accept from an API that clients call directly. Its stage sets it in the variable
 * `origin`, which no request can set. It is not a secret: only this API has the permission to call the functions.
 */
export const originOfStage = Aws.STACK_ID;

export interface RelayApiProps {
  relayName: string;
  functions: RelayFunctions;
  /** Private: only these VPC endpoints can call it. Without them the API has a public address in the region. */
  vpcEndpointIds?: readonly string[] | undefined;
  /** Nothing is in front of it, so it says itself who calls. */
  direct: boolean;
  domain?: RelayDomain | undefined;
  /** ARN of a WAF ACL of the region. */
  webAclArn?: string | undefined;
}

export class RelayApi extends Construct {
  /** The host name, and the path of the stage or nothing. */
  readonly host: string;
  readonly path: string;
  readonly api: CfnRestApi;

  constructor(scope: Construct, id: string, props: RelayApiProps) {
    super(scope, id);
    const { relayName, functions, vpcEndpointIds, domain, webAclArn } = props;
    const { partition, region, account } = Stack.of(this);
    const body = buildDefinition(functions, vpcEndpointIds, { name: relayName, partition, region });
    this.api = new CfnRestApi(this, 'Api', {
      name: relayName,
      description: `${relayName}: OpenAI-compatible relay`,
      body,
      endpointConfiguration: vpcEndpointIds
        ? { types: ['PRIVATE'], vpcEndpointIds: [...vpcEndpointIds] }
        : { types: ['REGIONAL'] },
      ...(domain && { disableExecuteApiEndpoint: true }),
    });
    // A deployment is a copy, so a changed definition needs a new one.
    const written = JSON.stringify(Stack.of(this).resolve(body));
    const version = createHash('sha256').update(written).digest('hex').slice(0, 12);
    const deployment = new CfnDeployment(this, `Deployment${version}`, { restApiId: this.api.ref });
    const stage = new CfnStage(this, 'Stage', {
      restApiId: this.api.ref,
      deploymentId: deployment.ref,
      stageName,
      ...(props.direct && { variables: { origin: originOfStage } }),
    });
    const ofStage = `arn:${partition}:execute-api:${region}:${account}:${this.api.ref}/${stageName}/*/*`;
    // Without them it answers 500.
    for (const [name, { live }] of functions.byName)
      if (live)
        void new CfnPermission(this, `${name}Permission`, {
          action: 'lambda:InvokeFunction',
          functionName: live.functionArn,
          principal: 'apigateway.amazonaws.com',
          sourceArn: ofStage,
        });
    if (webAclArn !== undefined)
      void new CfnWebACLAssociation(this, 'WebAcl', {
        resourceArn: `arn:${partition}:apigateway:${region}::/restapis/${this.api.ref}/stages/${stage.ref}`,
        webAclArn,
      });
    const [first] = vpcEndpointIds ?? [];
    // A private API's name with an endpoint in it leads to that endpoint wherever it is resolved.
    const ownName = first === undefined ? this.api.ref : `${this.api.ref}-${first}`;
    if (domain) this.named(domain, stage);
    this.host = domain?.name ?? `${ownName}.execute-api.${region}.${Aws.URL_SUFFIX}`;
    this.path = domain ? '' : `/${stageName}`;
  }

  /** A name of one's own has no stage in its paths. */
  private named({ name, certificate, hostedZone }: RelayDomain, stage: CfnStage): void {
    const custom = new CfnDomainName(this, 'Domain', {
      domainName: name,
      regionalCertificateArn: certificate.certificateArn,
      endpointConfiguration: { types: ['REGIONAL'] },
      securityPolicy: 'TLS_1_2',
    });
    void new CfnBasePathMapping(this, 'Mapping', {
      domainName: custom.ref,
      restApiId: this.api.ref,
      stage: stage.ref,
    });
    const target = { dnsName: custom.attrRegionalDomainName, hostedZoneId: custom.attrRegionalHostedZoneId };
    // Such a name has addresses of IPv4 alone.
    if (hostedZone)
      addressRecords(this, { zone: hostedZone, name, target: { bind: () => target }, ipv6: false });
  }
}

/** The API as OpenAPI, with API Gateway's extensions. */
function buildDefinition(
  functions: RelayFunctions,
  vpcEndpointIds: readonly string[] | undefined,
  { name, partition, region }: { name: string; partition: string; region: string },
): object {
  const buildIntegration = (called: FunctionName): object => {
    const streams = functionDescriptions[called].url === 'RESPONSE_STREAM';
    const action = streams
      ? '2021-11-15/functions/*/response-streaming-invocations'
      : '2015-03-31/functions/*/invocations';
    const path = action.replace('*', functions.live(called).functionArn);
    return {
      type: 'aws_proxy',
      httpMethod: 'POST',
      uri: `arn:${partition}:apigateway:${region}:lambda:path/${path}`,
      responseTransferMode: streams ? 'STREAM' : 'BUFFERED',
      // The longest that each may take.
      timeoutInMillis: streams ? 900_000 : 29_000,
    };
  };
  return {
    openapi: '3.0.1',
    info: { title: name, version: '1' },
    paths: Object.fromEntries(
      apiPaths().map(([path, called]) => [
        path,
        {
          'x-amazon-apigateway-any-method': {
            ...(path.endsWith(rest) && {
              parameters: [{ name: 'proxy', in: 'path', required: true, schema: { type: 'string' } }],
            }),
            responses: {},
            'x-amazon-apigateway-integration': buildIntegration(called),
          },
        },
      ]),
    ),
    // Bodies that are compressed have the type of what is in them, so all are taken as they come, as base64.
    'x-amazon-apigateway-binary-media-types': ['*/*'],
    'x-amazon-apigateway-gateway-responses': ownAnswers,
    ...(vpcEndpointIds && { 'x-amazon-apigateway-policy': buildApiPolicy(vpcEndpointIds) }),
  };
}

const rest = '/{proxy+}';

const findCalledFunction = (path: string): FunctionName =>
  routes.find((route) => compilePattern(route.path).test(path))?.function ?? defaultFunction;

/** Each path of the routes, those above it, and what is below each: a CloudFront pattern matches more than a resource does. */
export function apiPaths(): [path: string, called: FunctionName][] {
  const ends = routes.map(({ path }) => path.replace(/\/?\*$/, ''));
  const nodes = new Set(
    ends.flatMap((path) => [...path.matchAll(/(?=\/)|$/g)].map(({ index }) => path.slice(0, index))),
  );
  return [...nodes].flatMap((node): [string, FunctionName][] => [
    [node || '/', findCalledFunction(node || '/')],
    [`${node}${rest}`, findCalledFunction(`${node}/any`)],
  ]);
}

/**
 * Without these a page sees no status, but a network that fails, and an SDK in it tries again. To any page: they hold nothing of a customer,
 * and which ones the setting `cors_origins` allows API Gateway cannot know.
 */
const forPages = {
  'Access-Control-Allow-Origin': "'*'",
  'Access-Control-Expose-Headers': "'x-request-id, retry-after'",
};

/** API Gateway's own answers have the form of the relay's errors, for clients of OpenAI and Anthropic. */
const ownAnswers = {
  REQUEST_TOO_LARGE: answer(413, 'invalid_request_error', 'request_too_large', {
    message:
      '"The body is larger than API Gateway passes on to functions, which is some 4.5 MB. Send fewer or smaller images, or less of the conversation."',
  }),
  THROTTLED: answer(429, 'rate_limit_error', 'rate_limit_exceeded', { headers: { 'Retry-After': "'1'" } }),
  INTEGRATION_TIMEOUT: answer(504, 'internal_error', 'unavailable'),
  DEFAULT_4XX: answer(undefined, 'invalid_request_error'),
  DEFAULT_5XX: answer(undefined, 'internal_error', 'unavailable'),
};

function answer(
  statusCode: number | undefined,
  type: string,
  code?: string,
  {
    message = '$context.error.messageString',
    headers = {},
  }: { message?: string; headers?: Record<string, string> } = {},
): object {
  const given = { 'x-request-id': 'context.requestId', ...forPages, ...headers };
  return {
    ...(statusCode !== undefined && { statusCode }),
    responseParameters: Object.fromEntries(
      Object.entries(given).map(([name, value]) => [`gatewayresponse.header.${name}`, value]),
    ),
    responseTemplates: {
      'application/json': `{"type":"error","error":{"message":${message},"type":"${type}","param":null,"code":${JSON.stringify(code ?? null)}}}`,
    },
  };
}

const buildApiPolicy = (vpcEndpointIds: readonly string[]): object => ({
  Version: '2012-10-17',
  Statement: [
    {
      Effect: 'Allow',
      Principal: '*',
      Action: 'execute-api:Invoke',
      Resource: 'execute-api:/*',
      Condition: { StringEquals: { 'aws:SourceVpce': vpcEndpointIds } },
    },
  ],
});
