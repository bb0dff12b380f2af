import type { IncomingMessage, ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { closeServer, listenOnLoopback } from '../host/free-port.ts';
import { serverForPrograms } from '../host/for-programs.ts';
import { demoAnswer } from './answer.ts';
import { fail } from './failures.ts';
import { demoModels, isDemoRequest, lastUserText } from './request.ts';
import { sendError, sendJson, sendJsonAnswer, sendStream } from './reply.ts';

/**
 * A small scripted OpenAI-compatible server on loopback: the local stack answers without an API key. It takes
 * no credentials. Port 0 picks a free port. Equal requests get equal answers.
 */
export async function startDemoUpstream(port = 0): Promise<{ port: number; close(): Promise<void> }> {
  const server = serverForPrograms((request, response) => {
    serve(request, response).catch(() => response.destroy());
  });
  return { port: await listenOnLoopback(server, port), close: () => closeServer(server) };
}

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = request.url?.split('?')[0];
  if (request.method === 'GET' && path === '/v1/models')
    return sendJson(response, 200, {
      object: 'list',
      data: demoModels.map((id) => ({ id, object: 'model', created: 0, owned_by: 'demo' })),
    });
  if (request.method === 'POST' && path === '/v1/chat/completions') return chat(request, response);
  const message = 'There is no such endpoint in the demo upstream.';
  return sendError(response, { status: 404, message, code: 'not_found' });
}

async function chat(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body: unknown = await json(request).catch(() => undefined);
  if (!isDemoRequest(body))
    return sendError(response, {
      status: 400,
      message: 'A model and messages are wanted.',
      code: 'invalid_request',
    });
  if (!demoModels.includes(body.model))
    return sendError(response, {
      status: 404,
      message: `The model ${body.model} does not exist.`,
      code: 'model_not_found',
    });
  if (body.model === 'demo-error') return fail(lastUserText(body), response);
  const answer = demoAnswer(body);
  return body.stream === true ? sendStream(response, body, answer) : sendJsonAnswer(response, body, answer);
}
