import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { demoAnswer } from './answer.ts';
import { fail } from './failures.ts';
import { demoModels, isDemoRequest, lastUserText } from './request.ts';
import { sendError, sendJson, sendJsonAnswer, sendStream } from './reply.ts';

/**
 * A small scripted OpenAI-compatible server on loopback, so that the local stack answers without any key.
 * It takes no credentials. Port 0 picks a free one. Every answer follows from its request alone.
 */
export async function startDemoUpstream(port = 0): Promise<{ port: number; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    serve(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = request.url?.split('?')[0];
  if (request.method === 'GET' && path === '/v1/models')
    return sendJson(response, 200, {
      object: 'list',
      data: demoModels.map((id) => ({ id, object: 'model', created: 0, owned_by: 'demo' })),
    });
  if (request.method === 'POST' && path === '/v1/chat/completions') return chat(request, response);
  return sendError(response, 404, 'There is no such endpoint in the demo upstream.', 'not_found');
}

async function chat(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body: unknown = await json(request).catch(() => undefined);
  if (!isDemoRequest(body))
    return sendError(response, 400, 'A model and messages are wanted.', 'invalid_request');
  if (!demoModels.includes(body.model))
    return sendError(response, 404, `The model ${body.model} does not exist.`, 'model_not_found');
  if (body.model === 'demo-error') return fail(lastUserText(body), response);
  const answer = demoAnswer(body);
  return body.stream === true ? sendStream(response, body, answer) : sendJsonAnswer(response, body, answer);
}
