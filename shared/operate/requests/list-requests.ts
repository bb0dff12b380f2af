/** View: the requests of a time, from the log. */
import type { LoggedLine, LogSearch } from '../call-log.ts';
import type { OperatorPorts } from '../operator-ports.ts';

export interface ListedRequest {
  id: string;
  at: string;
  account: string;
  model: string;
  channel: string;
  /** HTTP status. */
  status: string;
  code: string;
  reason: string;
  firstContentMs: string;
  durationMs: string;
}

export async function listRequests(
  { log }: Pick<OperatorPorts, 'log'>,
  search: LogSearch,
): Promise<{ requests: ListedRequest[]; scannedBytes: number }> {
  const { lines, scannedBytes } = await log.search(search);
  return { requests: lines.map(listed), scannedBytes };
}

function listed({ atMs, fields }: LoggedLine): ListedRequest {
  const client = { ...(fields['client'] as Record<string, unknown> | undefined) };
  const of = (...names: string[]): string => {
    const value = names.map((name) => fields[name] ?? client[name]).find((each) => each !== undefined);
    return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
  };
  return {
    id: of('request_id'),
    at: new Date(atMs).toISOString(),
    account: of('account'),
    model: of('model'),
    channel: of('channel'),
    status: of('status'),
    code: of('code'),
    reason: of('reason'),
    firstContentMs: of('FirstContentMs', 'first_content_ms'),
    durationMs: of('duration_ms', 'ms'),
  };
}
