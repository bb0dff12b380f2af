import middy from '@middy/core';
import { executionModeStreamifyResponse } from '@middy/core/StreamifyResponse';
import type { Context, LambdaFunctionURLEvent } from 'aws-lambda';
import type { Readable } from 'node:stream';
import { answerEvent, type EdgeParts } from '../http-entry/http-entry.ts';
import { steadyBody } from './steady-body.ts';

interface StreamedResult {
  statusCode: number;
  headers: Record<string, string>;
  body: Readable;
}

/** The handler of a function whose URL streams. An invocation lasts until the response's `done`, client or not. */
export function streamingHandler(parts: EdgeParts) {
  const unfinished = new WeakMap<object, Promise<void>>();
  const run = async (event: LambdaFunctionURLEvent, context: Context): Promise<StreamedResult> => {
    const response = await answerEvent(parts, event, context);
    const id = response.headers['x-request-id'] ?? '';
    const body = steadyBody(response.body, (error) => parts.log.fault(id, error));
    const result = { statusCode: response.status, headers: response.headers, body };
    unfinished.set(result, response.done);
    return result;
  };
  return middy<LambdaFunctionURLEvent, StreamedResult>({
    executionMode: executionModeStreamifyResponse,
    // The relay keeps its own deadline, with an answer in the protocol.
    timeoutEarlyInMillis: 0,
    requestEnd: (request) => unfinished.get(request.response),
  }).handler(run);
}
