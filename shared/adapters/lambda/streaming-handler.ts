/**
 * The Lambda handler of a function whose URL streams. An invocation lasts until the response's `done`
 * resolves, even after the client disconnects.
 */
import middy from '@middy/core';
import type { Context, LambdaFunctionURLEvent } from 'aws-lambda';
import type { HostedHandle, RelayResponse } from '../../relay/http/http.ts';
import { answerRequest } from '../http-entry/http-entry.ts';
import { functionUrlRequest } from './function-url-request.ts';
import { writeBody } from './streamed-body.ts';
import { trapRejections } from './trap-rejections.ts';

export function streamingHandler(hosted: HostedHandle) {
  trapRejections(hosted.log);
  const run = (event: LambdaFunctionURLEvent, context: Context): Promise<RelayResponse> =>
    answerRequest(hosted, () =>
      functionUrlRequest(event, hosted.clock.now() + context.getRemainingTimeInMillis()),
    );
  // Not middy's streaming mode: it pipes into the connection, and a pipe cannot be broken once its source has ended.
  // The relay enforces its own deadline and then sends an error in the protocol.
  const answer = middy<LambdaFunctionURLEvent, RelayResponse>({ timeoutEarlyInMillis: 0 }).handler(run);
  return awslambda.streamifyResponse(async (event: LambdaFunctionURLEvent, connection, context) => {
    const response = await answer(event, context);
    const { status: statusCode, headers } = response;
    const stream = awslambda.HttpResponseStream.from(connection, { statusCode, headers });
    const id = headers['x-request-id'] ?? '';
    await writeBody(stream, response, (error) => hosted.log.fault(id, error));
    await response.done;
  });
}
