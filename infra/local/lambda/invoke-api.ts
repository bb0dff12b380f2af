/** Emulates Lambda's Invoke for events: an event is taken at once, and its function runs without its sender. */
import type { Log } from '../host/log.ts';
import { closeServer, listenOnLoopback } from '../host/free-port.ts';
import { serverForPrograms } from '../host/for-programs.ts';
import type { LocalFunction } from './local-function.ts';

/** Lambda's limit for events. */
const eventBytesMax = 1024 * 1024;
const pathPattern = /^\/2015-03-31\/functions\/([^/]+)\/invocations$/;

export interface InvokeApi {
  endpoint: string;
  /** The functions by name; before it is called there are none. */
  open(functions: ReadonlyMap<string, LocalFunction>): void;
  close(): Promise<void>;
}

export async function startInvokeApi(log: Log): Promise<InvokeApi> {
  let functions: ReadonlyMap<string, LocalFunction> = new Map();
  const server = serverForPrograms((request, response) => {
    const refuse = (status: number, type: string): void =>
      void response
        .writeHead(status, { 'content-type': 'application/json', 'x-amzn-errortype': type })
        .end(JSON.stringify({ Type: 'User', Message: type }));
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => void pieces.push(piece));
    request.on('error', () => {});
    request.once('end', () => {
      const name = pathPattern.exec(request.url ?? '')?.[1];
      const target = functions.get(decodeURIComponent(name ?? ''));
      const body = Buffer.concat(pieces);
      if (name === undefined || request.method !== 'POST') return refuse(404, 'UnknownOperationException');
      if (!target) return refuse(404, 'ResourceNotFoundException');
      if (request.headers['x-amz-invocation-type'] !== 'Event')
        return refuse(400, 'InvalidParameterValueException');
      if (!request.headers.authorization?.startsWith('AWS4-HMAC-SHA256 '))
        return refuse(403, 'MissingAuthenticationTokenException');
      if (body.length > eventBytesMax) return refuse(413, 'RequestTooLargeException');
      let event: unknown;
      try {
        event = JSON.parse(body.toString());
      } catch {
        return refuse(400, 'InvalidRequestContentException');
      }
      target.call(event).catch((error: unknown) => log(`event lost: ${String(error)}`));
      response.writeHead(202).end();
    });
  });
  const port = await listenOnLoopback(server, 0);
  return {
    endpoint: `http://127.0.0.1:${port}`,
    open: (given) => void (functions = given),
    close: () => closeServer(server),
  };
}
