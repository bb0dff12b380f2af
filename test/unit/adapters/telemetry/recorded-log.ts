import type { Log, RequestLog } from '../../../../shared/relay/ports/telemetry.ts';

export interface RecordedLog extends Log {
  requests: RequestLog[];
  events: { name: string; fields: Record<string, unknown> }[];
  faults: { requestId: string; error: unknown; fields?: Record<string, string> }[];
}

/** A log that records its lines. */
export function recordedLog(): RecordedLog {
  const requests: RequestLog[] = [];
  const events: RecordedLog['events'] = [];
  const faults: RecordedLog['faults'] = [];
  return {
    requests,
    events,
    faults,
    event: (name, fields) => void events.push({ name, fields }),
    request: (entry) => void requests.push(entry),
    fault: (requestId, error, fields) => void faults.push({ requestId, error, ...(fields && { fields }) }),
  };
}
