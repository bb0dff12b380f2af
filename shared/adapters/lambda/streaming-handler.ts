/**
 * The Lambda handler of a function whose URL streams. An invocation lasts until the response's `done`
 * resolves, even after the client disconnects.
 */
import middy from '@middy/core';
import { executionModeStreamifyResponse } from '@middy/core/StreamifyResponse';
import type { Context, LambdaFunctionURLEvent } from 'aws-lambda';
import type { Readable } from 'node:stream';
import type { HostedHandle } from '../../relay/http/http.ts';
import { answerRequest } from '../http-entry/http-entry.ts';
import { functionUrlRequest } from './function-url-request.ts';
import { steadyBody } from './steady-body.ts';
import { trapRejections } from './trap-rejections.ts';

interface StreamedResult {
  statusCode: number;
  headers: Record<string, string>;
  body: Readable;
}

export function streamingHandler(hosted: HostedHandle) {
  trapRejections(hosted.log);
  const unfinished = new WeakMap<object, Promise<void>>();
  const run = async (event: LambdaFunctionURLEvent, context: Context): Promise<StreamedResult> => {
    const response = await answerRequest(hosted, () =>
      functionUrlRequest(event, hosted.clock.now() + context.getRemainingTimeInMillis()),
    );
    const id = response.headers['x-request-id'] ?? '';
    const body = steadyBody(response.body, (error) => hosted.log.fault(id, error));
    const result = { statusCode: response.status, headers: response.headers, body };
    unfinished.set(result, response.done);
    return result;
  };
  return middy<LambdaFunctionURLEvent, StreamedResult>({
    executionMode: executionModeStreamifyResponse,
    // The relay enforces its own deadline and then sends an error in the protocol.
    timeoutEarlyInMillis: 0,
    requestEnd: (request) => unfinished.get(request.response),
  }).handler(run);
}
