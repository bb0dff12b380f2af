/** View: the lines that a request left in the log. */
import type { LoggedLine } from '../call-log.ts';
import { deniedExitCode, Failure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { AskedId } from './asked-id.ts';
import { aroundMs, missingLines } from './log-note.ts';

const linesMax = 100;

export interface LoggedRequest {
  id: string;
  /** The request's line. */
  line: LoggedLine | undefined;
  /** The line `explain`. */
  story: LoggedLine | undefined;
  /** Of everything else that was logged about it: the names. */
  events: string[];
}

export interface LogFinding {
  /** Several: the beginning of an id is that of all of them. */
  requests: LoggedRequest[];
  /** Why there is nothing, or may be more. */
  note: string | undefined;
}

/** Throws the Failure of credentials that may not read the log; any other one becomes the note. */
export async function loggedRequests(
  { log, clock }: Pick<OperatorPorts, 'log' | 'clock'>,
  { text, timeMs }: AskedId,
): Promise<LogFinding> {
  const nowMs = clock.now();
  try {
    if (!(await log.source()))
      return {
        requests: [],
        note: 'it is not known where the log of this relay is; only the tables were asked',
      };
    const { lines } = await log.search({
      fromMs: timeMs - aroundMs,
      toMs: Math.max(timeMs, Math.min(nowMs, timeMs + aroundMs)),
      conditions: [{ field: 'request_id', startsWith: text }],
      limit: linesMax,
    });
    const byId = Map.groupBy(lines, ({ fields }) => String(fields['request_id']));
    const requests = [...byId].map(([id, own]) => loggedRequest(id, own));
    return { requests, note: requests.length > 0 ? undefined : missingLines(timeMs, nowMs) };
  } catch (error) {
    if (!(error instanceof Failure) || error.exitCode === deniedExitCode) throw error;
    return { requests: [], note: `the log could not be read: ${error.message}` };
  }
}

function loggedRequest(id: string, lines: readonly LoggedLine[]): LoggedRequest {
  const named = (message: string): LoggedLine | undefined =>
    lines.findLast(({ fields }) => fields['message'] === message);
  const names = lines.map(({ fields }) => String(fields['message']));
  return {
    id,
    line: named('request'),
    story: named('explain'),
    events: names.filter((name) => name !== 'request' && name !== 'explain'),
  };
}
