import middy from '@middy/core';
import type { Context, LambdaFunctionURLEvent } from 'aws-lambda';
import { answerEvent, type EdgeParts } from '../http-entry/http-entry.ts';

interface BufferedResult {
  statusCode: number;
  headers: Record<string, string>;
  body: string;
}

/** The handler of a function whose URL answers in one piece. */
export function bufferedHandler(parts: EdgeParts) {
  const run = async (event: LambdaFunctionURLEvent, context: Context): Promise<BufferedResult> => {
    const response = await answerEvent(parts, event, context);
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
