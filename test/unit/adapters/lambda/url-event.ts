import type { Context, LambdaFunctionURLEvent } from 'aws-lambda';

export interface EventParts {
  method?: string;
  path?: string;
  query?: string;
  headers?: Record<string, string>;
  body?: string;
  base64?: boolean;
}

/** A Function URL event, payload 2.0. */
export function urlEvent({
  method = 'POST',
  path = '/v1/chat/completions',
  query = '',
  headers = {},
  body,
  base64 = false,
}: EventParts = {}): LambdaFunctionURLEvent {
  return {
    version: '2.0',
    routeKey: '$default',
    rawPath: path,
    rawQueryString: query,
    headers,
    requestContext: {
      accountId: 'anonymous',
      apiId: 'local',
      domainName: 'local.lambda-url.us-east-1.on.aws',
      domainPrefix: 'local',
      http: { method, path, protocol: 'HTTP/1.1', sourceIp: '127.0.0.1', userAgent: 'test' },
      requestId: 'aws-id',
      routeKey: '$default',
      stage: '$default',
      time: '01/Nov/2026:00:00:00 +0000',
      timeEpoch: 1_793_491_200_000,
    },
    ...(body !== undefined && { body }),
    isBase64Encoded: base64,
  };
}

/** The parts of an invocation's context that the edge reads. */
export const invocation = (remainingMs = 900_000): Context =>
  ({ awsRequestId: 'aws-id', getRemainingTimeInMillis: () => remainingMs }) as Context;
