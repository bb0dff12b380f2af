/**
 * Logs unhandled promise rejections instead of ending the process. A reset of the runtime's connection causes
 * such a rejection inside AWS's client, and the invocation still has to settle.
 */
import { AnswerCut } from '../../relay/http/answer-cut.ts';
import type { Log } from '../../relay/ports/telemetry.ts';

/** Called once per process, at start. */
export function trapRejections(log: Log): void {
  process.on('unhandledRejection', (reason) => {
    // The relay broke the connection itself, and has logged it.
    if (!(reason instanceof AnswerCut)) log.fault('process', reason);
  });
}
