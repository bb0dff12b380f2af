/**
 * Logs promises that were rejected with nobody waiting, instead of ending the process: a reset of the runtime's
 * connection rejects such a promise inside AWS's client, and the invocation still has to settle.
 */
import type { Log } from '../../relay/ports/telemetry.ts';

/** Called once per process, at start. */
export function trapRejections(log: Log): void {
  process.on('unhandledRejection', (reason) => log.fault('process', reason));
}
