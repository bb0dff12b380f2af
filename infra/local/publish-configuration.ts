import type { Log } from './host/log.ts';
import { StartError } from './host/start-error.ts';

interface CalledFunction {
  settings: { name: string };
  call(event: object): Promise<unknown>;
}

/**
 * Type of the function's error when only marks were lost: MarksLost in shared/relay/ports/stores/config-store.ts.
 */
const marksLost = 'MarksLost';

/**
 * Publishes the rows that exist at the start, so that first requests need not wait for the streams to invoke
 * the function. Throws StartError when they cannot be published.
 */
export async function publishConfiguration(
  functions: ReadonlyMap<string, CalledFunction>,
  log: Log,
): Promise<void> {
  const config = [...functions.values()].find(({ settings }) => settings.name === 'config');
  await config?.call({ 'detail-type': 'Scheduled Event', source: 'relay.start' }).catch((error: unknown) => {
    const { message, errorType } = error as Error & { errorType?: string };
    if (errorType !== marksLost) throw new StartError(`the configuration cannot be published: ${message}`);
    // The configuration is published before rows are marked, and the schedule retries the marks.
    log(`[start] ${message}`);
  });
}
