/** The Lambda handler of a function whose URL returns buffered responses. */
import middy from '@middy/core';
import type { Context, LambdaFunctionURLEvent } from 'aws-lambda';
import type { HostedHandle } from '../../relay/http/http.ts';
import { answerRequest } from '../http-entry/http-entry.ts';
import { functionUrlRequest } from './function-url-request.ts';
import { trapRejections } from './trap-rejections.ts';

interface BufferedResult {
  statusCode: number;
  headers: Record<string, string>;
  body: string;
}

export function bufferedHandler(hosted: HostedHandle) {
  trapRejections(hosted.log);
  const run = async (event: LambdaFunctionURLEvent, context: Context): Promise<BufferedResult> => {
    const response = await answerRequest(hosted, () =>
      functionUrlRequest(event, hosted.clock.now() + context.getRemainingTimeInMillis()),
    );
    const body = await wholeText(response.body);
    await response.done;
    return { statusCode: response.status, headers: response.headers, body };
  };
  return middy<LambdaFunctionURLEvent, BufferedResult>({ timeoutEarlyInMillis: 0 }).handler(run);
}

async function wholeText(body: string | AsyncIterable<string>): Promise<string> {
  if (typeof body === 'string') return body;
  let text = '';
  for await (const piece of body) text += piece;
  return text;
}
