/**
 * Emulates a REST API of API Gateway as the template defines it: paths, Lambda proxy integrations that stream or do not, binary
 * types, limits, permissions, its own answers. Refuses at start what a deployment would be refused, and answers 500 where the
 * real one may not call its function. "Developer Guide" names the pages of API Gateway's.
 */
import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { APIGatewayProxyEvent } from 'aws-lambda';
import { ofConnection, readBody } from './host/loopback.ts';
import { StartError } from './host/messages.ts';
import { localAccount } from './host/local-options.ts';
import {
  answerOf,
  type FunctionUrl,
  type OriginAnswer,
  type UrlRequest,
  wholeBytesMax,
} from './lambda/function-url.ts';
import type { LocalFunction } from './lambda/local-function.ts';
import { getFunctionByName } from './template/build-functions.ts';
import { functionOf, type LocalReferences, resourcesOf, nameRestApiHost } from './template/template.ts';

interface Integration {
  type: string;
  httpMethod: string;
  uri: string;
  responseTransferMode?: 'BUFFERED' | 'STREAM';
}

interface GatewayResponse {
  statusCode?: number;
  responseParameters?: Record<string, string>;
  responseTemplates?: Record<string, string>;
}

interface Definition {
  paths: Record<
    string,
    { 'x-amazon-apigateway-any-method': { 'x-amazon-apigateway-integration': Integration } }
  >;
  'x-amazon-apigateway-binary-media-types'?: string[];
  'x-amazon-apigateway-gateway-responses'?: Record<string, GatewayResponse>;
}

interface ApiFacts {
  id: string;
  stage: string;
  /** The part of the path that is not in the event's own: `/<stage>`, or nothing under a name of its own. */
  prefix: string;
  variables: Record<string, string> | null;
  binaryTypes: readonly string[];
}

interface RestApi extends ApiFacts {
  paths: Definition['paths'];
  gatewayResponses: Readonly<Record<string, GatewayResponse>>;
  /** By what the URI of an integration has: the function of the alias, and whether this API may call it. */
  called(uri: string): { target: LocalFunction; isPermitted: boolean };
}

/** Reads the template's API, if there is one. Throws StartError for what API Gateway would reject. */
export function readRestApi(
  references: LocalReferences,
  functions: ReadonlyMap<string, LocalFunction>,
): RestApi | undefined {
  const all = (type: Parameters<typeof resourcesOf>[1]) => resourcesOf(references.template, type);
  const [[id, resource] = [], ...others] = all('AWS::ApiGateway::RestApi');
  if (id === undefined) return undefined;
  const [[, stage] = [], ...otherStages] = all('AWS::ApiGateway::Stage');
  if (!stage || others.length > 0 || otherStages.length > 0)
    throw new StartError('the template must have one API and one stage');
  const { StageName, Variables = null } = references.resolve(stage.Properties) as {
    StageName: string;
    Variables?: Record<string, string>;
  };
  const { Body, EndpointConfiguration } = references.resolve(resource?.Properties) as {
    Body: Definition;
    EndpointConfiguration?: { Types?: string[] };
  };
  if (!EndpointConfiguration?.Types?.every((type) => type === 'REGIONAL' || type === 'PRIVATE'))
    throw new StartError(`${id} is edge-optimized: its streams end after 30 s of silence`);
  for (const [path, method] of Object.entries(Body.paths))
    checkIntegration(path, method['x-amazon-apigateway-any-method']['x-amazon-apigateway-integration']);
  // A template whose stage names its region names it too.
  const ours = `:${localAccount}:${references.physicalName(id)}/${StageName}/*/*`;
  const permitted = new Set(
    all('AWS::Lambda::Permission').flatMap(([, { Properties = {} }]) => {
      if (Properties['Principal'] !== 'apigateway.amazonaws.com') return [];
      const { FunctionName, SourceArn = '' } = references.resolve(Properties) as Record<string, string>;
      return SourceArn.startsWith('arn:aws:execute-api:') && SourceArn.endsWith(ours) ? [FunctionName] : [];
    }),
  );
  const aliases = new Map(
    all('AWS::Lambda::Alias').map(([alias, { Properties = {} }]) => [
      references.physicalName(alias),
      functionOf(Properties['FunctionName'], references.template),
    ]),
  );
  return {
    id: references.physicalName(id),
    stage: StageName,
    prefix: all('AWS::ApiGateway::BasePathMapping').length > 0 ? '' : `/${StageName}`,
    variables: Variables,
    binaryTypes: Body['x-amazon-apigateway-binary-media-types'] ?? [],
    paths: Body.paths,
    gatewayResponses: Body['x-amazon-apigateway-gateway-responses'] ?? {},
    called(uri) {
      const name = uri.split('/functions/')[1]?.split('/')[0] ?? '';
      const target = getFunctionByName(functions, aliases.get(name) ?? name);
      return { target, isPermitted: permitted.has(name) };
    },
  };
}

/** Developer Guide, "Lambda proxy integration with payload response streaming": each mode has its own action of Lambda. */
function checkIntegration(
  path: string,
  { type, httpMethod, uri, responseTransferMode = 'BUFFERED' }: Integration,
): void {
  const streams = /:lambda:path\/2021-11-15\/functions\/[^/]+\/response-streaming-invocations$/.test(uri);
  const isWhole = /:lambda:path\/2015-03-31\/functions\/[^/]+\/invocations$/.test(uri);
  if (type !== 'aws_proxy' || httpMethod !== 'POST' || !(streams || isWhole))
    throw new StartError(`${path}: only Lambda proxy integrations, called with POST, are emulated`);
  if (streams !== (responseTransferMode === 'STREAM'))
    throw new StartError(
      `${path}: Invalid ResponseTransferMode. Cannot use ResponseTransferMode ${responseTransferMode} for Lambda functions invoked by ${streams ? 'InvokeWithResponseStream' : 'Invoke'} for AWS_PROXY integrations.`,
    );
}

/** Developer Guide, "Quotas": of a request, whatever is behind. Lambda's own quota is of the event. */
const requestBytesMax = 10 * 1024 * 1024;

/** Developer Guide, "Stream the integration response": of regional and private endpoints. */
export const idleTimeoutMs = 300_000;

/** Calls by the name of the stage, with `/<stage>` before each path, as a distribution does and clients without a domain do. */
export const createRestApiUrl =
  (api: RestApi): FunctionUrl =>
  async (request, { target: asked, headers }) => {
    const { prefix } = api;
    const requestId = randomUUID();
    const own = (name: string, usual: number, message: string): OriginAnswer =>
      ownAnswer(api, { name, usual, message, requestId });
    const body = await readBody(request, requestBytesMax);
    if (!asked.startsWith(`${prefix}/`)) return own('DEFAULT_4XX', 403, 'Forbidden');
    const target = asked.slice(prefix.length);
    const integration = findIntegration(api, target.split('?')[0] ?? '');
    if (!integration) return own('DEFAULT_4XX', 403, 'Missing Authentication Token');
    const { method = 'GET', socket } = request;
    const sourceIp = socket.remoteAddress?.replace('::ffff:', '') ?? '127.0.0.1';
    const domain = headers['host'] ?? nameRestApiHost(api.id);
    const event =
      body && buildRestApiEvent({ method, target, headers, body, sourceIp, domain }, requestId, api);
    if (!event || Buffer.byteLength(JSON.stringify(event)) > wholeBytesMax)
      return own('REQUEST_TOO_LARGE', 413, 'Request Too Long');
    const { target: called, isPermitted } = api.called(integration.uri);
    if (!isPermitted) return own('DEFAULT_5XX', 500, 'Internal server error');
    const mode = integration.responseTransferMode === 'STREAM' ? 'RESPONSE_STREAM' : 'BUFFERED';
    try {
      const answer = await answerOf(called.invoke(event, requestId), mode);
      const ids = { 'x-amzn-requestid': requestId, 'x-amz-apigw-id': requestId };
      return { ...answer, headers: { ...answer.headers, ...ids } };
    } catch {
      return own('DEFAULT_5XX', 502, 'Internal server error');
    }
  };

/** Answers when a function sends no byte for too long. */
export const answerTimeout = (api: RestApi): OriginAnswer => {
  const name = 'INTEGRATION_TIMEOUT';
  return ownAnswer(api, { name, usual: 504, message: 'Endpoint request timed out', requestId: randomUUID() });
};

/** The one whose path is most like the request's: itself, else the longest `{proxy+}` above it. */
function findIntegration({ paths }: RestApi, path: string): Integration | undefined {
  const rest = '{proxy+}';
  const [longest] = Object.keys(paths)
    .filter((each) => each.endsWith(rest) && path.length >= each.length - rest.length + 1)
    .filter((each) => path.startsWith(each.slice(0, -rest.length)))
    .toSorted((a, b) => b.length - a.length);
  const method = paths[path] ?? paths[longest ?? ''];
  return method?.['x-amazon-apigateway-any-method']['x-amazon-apigateway-integration'];
}

/** Developer Guide, "Gateway responses": the API's own of that name, else `{"message": ...}`. */
function ownAnswer(
  { gatewayResponses: all }: RestApi,
  { name, usual, message, requestId }: { name: string; usual: number; message: string; requestId: string },
): OriginAnswer {
  const given = all[name] ?? all[usual < 500 ? 'DEFAULT_4XX' : 'DEFAULT_5XX'] ?? {};
  const fillTemplate = (text: string): string =>
    text
      .replaceAll('$context.error.messageString', JSON.stringify(message))
      .replaceAll(/^'(.*)'$/g, '$1')
      .replaceAll('context.requestId', requestId);
  const answerItself = Object.entries(given.responseParameters ?? {}).map(([header, value]) => [
    header.replace('gatewayresponse.header.', '').toLowerCase(),
    fillTemplate(value),
  ]);
  const usualHeaders = { 'content-type': 'application/json', 'x-amzn-requestid': requestId };
  return {
    status: given.statusCode ?? usual,
    headers: { ...usualHeaders, ...(Object.fromEntries(answerItself) as object) },
    body: fillTemplate(
      given.responseTemplates?.['application/json'] ?? '{"message":$context.error.messageString}',
    ),
  };
}

/**
 * Developer Guide, "Input format of a Lambda function for proxy integration", without what functions do not read. The path stays
 * percent-encoded, the query does not.
 */
export function buildRestApiEvent(
  request: UrlRequest,
  requestId: string,
  api: ApiFacts,
): APIGatewayProxyEvent {
  const { method, target, body, sourceIp, domain } = request;
  const [path = '/', query = ''] = target.split(/\?(.*)/s);
  const multiValueHeaders = headersOf(request);
  const parameters = new URLSearchParams(query);
  const byName = Object.fromEntries([...parameters.keys()].map((name) => [name, parameters.getAll(name)]));
  const [, type = []] =
    Object.entries(multiValueHeaders).find(([name]) => name.toLowerCase() === 'content-type') ?? [];
  const isBinary = isBinaryType(type[0] ?? 'application/json', api.binaryTypes);
  const event = {
    path,
    httpMethod: method,
    headers: lastOf(multiValueHeaders),
    multiValueHeaders,
    queryStringParameters: query === '' ? null : lastOf(byName),
    multiValueQueryStringParameters: query === '' ? null : byName,
    stageVariables: api.variables,
    requestContext: {
      apiId: api.id,
      domainName: domain,
      identity: { sourceIp },
      path: api.prefix + path,
      requestId,
      requestTimeEpoch: Date.now(),
      stage: api.stage,
    },
    body: body.length === 0 ? null : body.toString(isBinary ? 'base64' : 'utf8'),
    isBase64Encoded: body.length > 0 && isBinary,
  };
  return event as unknown as APIGatewayProxyEvent;
}

/** Developer Guide, "Binary media types": by the type of the content alone. Others are text, and lose what is no UTF-8. */
const isBinaryType = (type: string, binaryTypes: readonly string[]): boolean =>
  binaryTypes.some((each) => each === '*/*' || each === type.split(';')[0]?.trim());

function headersOf({ headers, sourceIp, domain }: UrlRequest): Record<string, string[]> {
  const ownNames = /^(host|x-forwarded-(for|port|proto))$/i;
  const given = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined || ownNames.test(name) ? [] : [[name, [value].flat()] as const],
  );
  return {
    ...Object.fromEntries(given),
    Host: [domain],
    'X-Forwarded-For': [[headers['x-forwarded-for'], sourceIp].filter(Boolean).join(', ')],
    'X-Forwarded-Port': ['443'],
    'X-Forwarded-Proto': ['https'],
  };
}

const lastOf = (values: Record<string, string[]>): Record<string, string> =>
  Object.fromEntries(Object.entries(values).map(([name, all]) => [name, all.at(-1) ?? '']));

/** As clients wrote them, each as often as it came; those of the connection stay here. */
export function collectRawHeaders({ rawHeaders, headers }: IncomingMessage): IncomingHttpHeaders {
  const sent = new Map<string, string[]>();
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const [name = '', value = ''] = rawHeaders.slice(at, at + 2);
    if (!ofConnection.test(name)) sent.set(name, [...(sent.get(name) ?? []), value]);
  }
  return { ...Object.fromEntries(sent), ...(headers.host !== undefined && { host: headers.host }) };
}
