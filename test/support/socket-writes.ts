import { Socket } from 'node:net';
import { onTestFinished, vi } from 'vitest';

/** Counts the writes of this process to connections of a port from now on: each is one call of the system. */
export function countSocketWrites(port: number): { readonly count: number } {
  const counted = { count: 0 };
  const { prototype } = Socket;
  for (const name of ['_write', '_writev'] as const) {
    const write = prototype[name] as (...parameters: unknown[]) => void;
    const spy = vi.spyOn(prototype, name).mockImplementation(function (
      this: Socket,
      ...parameters: unknown[]
    ) {
      // Node writes what waited for a connection again once there is one.
      if (this.remotePort === port) counted.count += 1;
      write.apply(this, parameters);
    } as never);
    onTestFinished(() => spy.mockRestore());
  }
  return counted;
}
