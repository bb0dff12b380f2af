import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { serverForPrograms } from '../host/for-programs.ts';
import type { FunctionError } from './invocation.ts';

/** Handles the calls of the runtime client in one environment. */
export interface RuntimeCalls {
  /** The client is free; work is sent as this response. */
  next(response: ServerResponse): void;
  /** The function's code could not be loaded. */
  initFailed(error: FunctionError): void;
  answered(id: string, payload: Buffer): void;
  failed(id: string, error: FunctionError): void;
  streaming(id: string, body: IncomingMessage, contentType: string): void;
  /** True when this invocation is running. */
  isRunning(id: string): boolean;
}

const prefix = '/2018-06-01/runtime/';
const invocationPath = /^invocation\/([^/]+)\/(response|error)$/;

/** AWS's Lambda Runtime API (version 2018-06-01) for one environment; the caller listens and closes. */
export function createRuntimeApi(calls: RuntimeCalls): Server {
  const server = serverForPrograms((request, response) => {
    route(calls, request, response).catch(() => response.destroy());
  });
  // An invocation and an idle environment may both send nothing for minutes.
  server.requestTimeout = 0;
  server.headersTimeout = 0;
  server.keepAliveTimeout = 0;
  return server;
}

async function route(calls: RuntimeCalls, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = (request.url ?? '').startsWith(prefix) ? (request.url ?? '').slice(prefix.length) : '';
  if (request.method === 'GET' && path === 'invocation/next') return calls.next(response);
  if (path === 'init/error') {
    calls.initFailed(parseError(await buffer(request)));
    return answer(response, 202, accepted);
  }
  const match = invocationPath.exec(path);
  const id = decodeURIComponent(match?.[1] ?? '');
  if (match === null || !calls.isRunning(id)) {
    request.resume();
    return answer(response, 400, '{"errorType":"InvalidRequestID","errorMessage":"Invalid request ID"}');
  }
  if (match[2] === 'error') calls.failed(id, parseError(await buffer(request)));
  else if (request.headers['lambda-runtime-function-response-mode'] === 'streaming') {
    request.once('end', () => answer(response, 202, accepted));
    calls.streaming(id, request, request.headers['content-type'] ?? 'application/octet-stream');
    return;
  } else calls.answered(id, await buffer(request));
  answer(response, 202, accepted);
}

const accepted = '{"status":"OK"}';

function answer(response: ServerResponse, status: number, json: string): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(json);
}

function parseError(body: Buffer): FunctionError {
  try {
    const parsed = JSON.parse(body.toString()) as Partial<FunctionError>;
    return { errorType: parsed.errorType ?? 'Error', errorMessage: parsed.errorMessage ?? '' };
  } catch {
    return { errorType: 'Error', errorMessage: body.toString() };
  }
}
