/** Drives a fault proxy from another process. It has a port of its own, so that it answers while the proxy refuses. */
import { createServer, type IncomingMessage } from 'node:http';
import { json } from 'node:stream/consumers';
import { closeServer, listenOnLoopback } from '../host/free-port.ts';
import type { FaultRule, FaultRules } from './fault-rules.ts';

export interface FaultControlParts {
  rules: FaultRules;
  units: Record<string, number>;
  refuseConnections: (refused: boolean) => Promise<void>;
}

export async function startFaultControl(
  parts: FaultControlParts,
): Promise<{ endpoint: string; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    act(parts, request).then(
      (answer) => response.writeHead(answer === undefined ? 404 : 200).end(JSON.stringify(answer)),
      (error: unknown) => response.writeHead(400).end(String(error)),
    );
  });
  const port = await listenOnLoopback(server, 0);
  return { endpoint: `http://127.0.0.1:${port}`, close: () => closeServer(server) };
}

async function act(
  { rules, units, refuseConnections }: FaultControlParts,
  request: IncomingMessage,
): Promise<object | undefined> {
  const [, place, id] = (request.url ?? '').split('/');
  switch (`${request.method} ${place}`) {
    case 'POST rules':
      return { id: rules.add((await json(request)) as FaultRule) };
    case 'DELETE rules':
      if (id) rules.remove(Number(id));
      else rules.clear();
      return {};
    case 'POST connections':
      await refuseConnections(((await json(request)) as { refused: boolean }).refused);
      return {};
    case 'GET counts':
      return { ...rules.counts, units };
    default:
      return undefined;
  }
}
