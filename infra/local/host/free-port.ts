import { once } from 'node:events';
import type { Server as HttpServer } from 'node:http';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { StartError } from './start-error.ts';

/** Listens on loopback and resolves with the port; 0 picks a free one. Rejects with EADDRINUSE. */
export async function listenOnLoopback(server: Server, port: number, host = '127.0.0.1'): Promise<number> {
  server.listen(port, host);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** Closes the server and its open connections. */
export async function closeServer(server: HttpServer): Promise<void> {
  if (!server.listening) return;
  server.close();
  server.closeAllConnections();
  await once(server, 'close');
}

/** Resolves with any port that is free at an address of this machine. Rejects with EADDRNOTAVAIL. */
export async function freePort(host: string): Promise<number> {
  const server = createServer();
  const free = await listenOnLoopback(server, 0, host);
  server.close();
  await once(server, 'close');
  return free;
}

/** Replaces EADDRINUSE by a StartError that names the variable for choosing another port. */
export async function explainingTakenPort(
  variable: string,
  port: number,
  claim: Promise<number>,
): Promise<number> {
  try {
    return await claim;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    throw new StartError(`port ${port} (${variable}) is in use; try: ${variable}=${port + 1} npm start`);
  }
}
