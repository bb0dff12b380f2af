import { createServer, type AddressInfo } from 'node:net';

/** Resolves with the port when nobody listens on it, or with any free one for 0; rejects with EADDRINUSE. */
export function claimPort(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => {
      const { port: free } = server.address() as AddressInfo;
      server.close(() => resolve(free));
    });
  });
}

export const isPortInUse = (error: unknown): boolean =>
  (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
