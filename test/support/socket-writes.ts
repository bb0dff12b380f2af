import { Socket } from 'node:net';
import { onTestFinished, vi } from 'vitest';

/** Counts this process's later writes to connections of a port: each is one system call. */
export function countSocketWrites(port: number): { readonly count: number } {
  const counted = { count: 0 };
  const { prototype } = Socket;
  for (const name of ['_write', '_writev'] as const) {
    const write = prototype[name] as (...parameters: unknown[]) => void;
    const spy = vi.spyOn(prototype, name).mockImplementation(function (
      this: Socket,
      ...parameters: unknown[]
    ) {
      // Node repeats writes that waited for a connection once it is open.
      if (this.remotePort === port) counted.count += 1;
      write.apply(this, parameters);
    } as never);
    onTestFinished(() => spy.mockRestore());
  }
  return counted;
}
