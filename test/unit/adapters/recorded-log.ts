import type { Log, RequestLog } from '../../../shared/relay/ports.ts';

export interface RecordedLog extends Log {
  requests: RequestLog[];
  faults: { requestId: string; error: unknown }[];
}

/** A log that keeps what it was told. */
export function recordedLog(): RecordedLog {
  const requests: RequestLog[] = [];
  const faults: RecordedLog['faults'] = [];
  return {
    requests,
    faults,
    request: (entry) => void requests.push(entry),
    fault: (requestId, error) => void faults.push({ requestId, error }),
  };
}
