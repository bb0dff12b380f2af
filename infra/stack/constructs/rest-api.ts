/**
 * A REST API of API Gateway in front of the functions: regional, behind CloudFront or alone, or private in VPCs. It streams answers and
 * calls the alias `live`, so that deployments shift its calls too. Must never be edge-optimized, because that cuts a stream
 * after 30 s of silence (API Gateway, "Stream the integration response").
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

/** The stage in the API's own addresses. No path of the relay begins like this, and functions strip it. */
const stageName = 'relay';

/**
 * The origin that functions accept from an API without a distribution. The stage sets it in the variable `origin`, which no request
 * can set. It is no secret, because only this API may call the functions.
 */
export const originOfStage = Aws.STACK_ID;

export interface RelayApiProps {
  relayName: string;
  functions: RelayFunctions;
  /** Makes the API private: only these VPC endpoints can call it. Otherwise it has a public regional address. */
  vpcEndpointIds?: readonly string[] | undefined;
  /** True if clients call the API directly, so that it sets the origin itself. */
  direct: boolean;
  domain?: RelayDomain | undefined;
  /** ARN of a regional WAF ACL. */
  webAclArn?: string | undefined;
}

export class RelayApi extends Construct {
  /** The host name, and the path of the stage if there is one. */
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
    // A deployment is a snapshot, so a changed definition needs a new one.
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
    // Without these permissions the API answers 500.
    for (const [name, live] of functions.answeringAliases())
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
    // A private API's host name with an endpoint id resolves to that endpoint everywhere.
    const ownName = first === undefined ? this.api.ref : `${this.api.ref}-${first}`;
    if (domain) this.named(domain, stage);
    this.host = domain?.name ?? `${ownName}.execute-api.${region}.${Aws.URL_SUFFIX}`;
    this.path = domain ? '' : `/${stageName}`;
  }

  /** With a custom domain, paths contain no stage. */
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
    // A custom domain of an API has only IPv4 addresses.
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
      // The maximum for each kind.
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
    // A compressed body has the content type of its content, so every body is passed as base64.
    'x-amazon-apigateway-binary-media-types': ['*/*'],
    'x-amazon-apigateway-gateway-responses': ownAnswers,
    ...(vpcEndpointIds && { 'x-amazon-apigateway-policy': buildApiPolicy(vpcEndpointIds) }),
  };
}

const rest = '/{proxy+}';

const findCalledFunction = (path: string): FunctionName =>
  routes.find((route) => compilePattern(route.path).test(path))?.function ?? defaultFunction;

/** Lists each path of the routes with its parents and a wildcard below, because a CloudFront pattern matches more than a resource. */
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
 * Without these headers a browser reports a network failure instead of the status, and its SDK retries. Any page may read these
 * answers: they hold no customer data, and API Gateway can't know the setting `cors_origins`.
 */
const forPages = {
  'Access-Control-Allow-Origin': "'*'",
  'Access-Control-Expose-Headers': "'x-request-id, retry-after'",
};

/** Gives API Gateway's own answers the form of the relay's errors, for clients of OpenAI and Anthropic. */
const ownAnswers = {
  REQUEST_TOO_LARGE: answer(413, 'invalid_request_error', 'request_too_large', {
    message:
      '"The body is larger than API Gateway passes to functions, which is about 4.5 MB. Send fewer or smaller images, or less of the conversation."',
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
