import { once } from 'node:events';
import type { Server as HttpServer } from 'node:http';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { StartError } from './start-error.ts';

/** Listens on loopback and resolves with the port: 0 takes any free one. Rejects with EADDRINUSE. */
export async function listenOnLoopback(server: Server, port: number): Promise<number> {
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** Cuts the connections that are open. */
export async function closeServer(server: HttpServer): Promise<void> {
  if (!server.listening) return;
  server.close();
  server.closeAllConnections();
  await once(server, 'close');
}

/** Resolves with the port when nobody listens on it, or with any free one for 0; rejects with EADDRINUSE. */
export async function claimPort(port: number): Promise<number> {
  const server = createServer();
  const free = await listenOnLoopback(server, port);
  server.close();
  await once(server, 'close');
  return free;
}

/** Explains a port that is taken, and which variable names another. */
export async function explainingTakenPort(
  variable: string,
  port: number,
  claim: Promise<number>,
): Promise<number> {
  try {
    return await claim;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    throw new StartError(`port ${port} is in use; set ${variable} to another`);
  }
}
