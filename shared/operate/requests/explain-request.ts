/** View: everything that is known of a request: its lines in the log, its ledger row, the configuration of its time. */
import { formatCount, formatWrittenMoney, deniedExitCode, Failure } from '../plan.ts';
import type { OperatorPorts, LoggedLine } from '../operator-ports.ts';
import type { PassedOverLine, RequestLog, TriedLine } from '../../relay/ports/telemetry.ts';
import {
  parseAskedId,
  findBookedRequest,
  explainNotFound,
  findOpenRequest,
  type FoundRequest,
  keepStepsWithWords,
  describeWhom,
  type RequestStep,
} from './find-request.ts';
import { runMinutesMax } from '../../config/settings.ts';
import { dayMs } from '../../wire/iso-time.ts';

/**
 * Throws a Failure when nothing is known. `found` undefined: nothing was charged, and nothing is reserved. `note`: why the log has no
 * line, or none of the end. `version`: the configuration that was in force; undefined: it is not kept any more.
 * @param written as a client saw it, or the beginning of it
 */
export async function explainRequest(ports: OperatorPorts, written: string) {
  const asked = parseAskedId(written);
  const { requests, note } = await findLoggedRequests(ports, asked);
  const [logged, ...others] = requests;
  if (others.length > 0)
    throw new Failure(`several requests match: ${requests.map(({ id }) => id).join(', ')}`);
  const id = logged?.id ?? asked.text;
  if (!logged && !asked.isWhole)
    throw new Failure(`${id}: ${note}; use all 26 characters to search the ledger too`);
  // A call that has ended and has no row was refused or free of charge.
  const found =
    (await findBookedRequest(ports, id)) ?? (logged?.line ? undefined : await findOpenRequest(ports, id));
  if (!found && !logged) throw new Failure(`${explainNotFound(id)}; ${note}`);
  // A version is in force within seconds of its publication.
  const versions = await ports.config.versions({ sinceMs: asked.timeMs });
  const version = versions.find(({ publishedAt }) => publishedAt * 1000 <= asked.timeMs);
  return {
    id,
    found,
    logged,
    note: endNote(found, logged) ?? note,
    version: version?.version,
    servedVersion: versions[0]?.version,
  };
}

/** Explains an end that the log does not show, from the tables. */
function endNote(found: FoundRequest | undefined, logged: LoggedRequest | undefined): string | undefined {
  if (logged?.line) return undefined;
  if (found?.kind === 'booked' && found.row.kind === 'expired' && !found.late)
    return 'the log has no final line: the function died before it could write one';
  return logged && found?.kind === 'open' ? 'the final log line is written when the call ends' : undefined;
}

const linesMax = 100;

/** The lines that a request left in the log. `events`: of all but its own line, the names. */
export interface LoggedRequest {
  id: string;
  line: LoggedLine | undefined;
  events: string[];
}

/**
 * Throws the Failure of credentials that may not read the log; any other one becomes the note. Several requests: the beginning of an
 * id is that of all of them.
 * @param endedMs when its line was written: so much less of the log is read
 */
export async function findLoggedRequests(
  { log, clock }: OperatorPorts,
  { text, timeMs }: ReturnType<typeof parseAskedId>,
  endedMs?: number,
): Promise<{ requests: LoggedRequest[]; note: string | undefined }> {
  const nowMs = clock.now();
  const unknown = 'the log groups of this relay are unknown, so only the tables were searched';
  try {
    if (!(await log.source())) return { requests: [], note: unknown };
    const slackMs = endedMs === undefined ? aroundMs : 60_000;
    const lastMs = Math.min(nowMs, timeMs + aroundMs, (endedMs ?? timeMs) + slackMs);
    const { lines } = await log.search({
      fromMs: timeMs - slackMs,
      toMs: Math.max(timeMs, lastMs),
      conditions: [{ field: 'request_id', startsWith: text }],
      limit: linesMax,
    });
    const byId = Map.groupBy(lines, ({ fields }) => String(fields['request_id']));
    const requests = [...byId].map(([id, own]) => {
      const [ends, others] = [own.filter(isEnd), own.filter((line) => !isEnd(line))];
      return { id, line: ends.at(-1), events: others.map(({ fields }) => String(fields['message'])) };
    });
    return { requests, note: requests.length > 0 ? undefined : explainMissingLines(timeMs, nowMs) };
  } catch (error) {
    if (!(error instanceof Failure) || error.exitCode === deniedExitCode) throw error;
    return { requests: [], note: `cannot read the log: ${error.message}` };
  }
}

const isEnd = ({ fields }: LoggedLine): boolean => fields['message'] === 'request';

/** The range to search around the time in the id: a background run ends at most this long after its acceptance, and clocks differ slightly. */
const aroundMinutes = 1 + runMinutesMax;
const aroundMs = aroundMinutes * 60_000;

/** Why the log has no line of a request. What is deleted and what never was look the same, so both are said. */
function explainMissingLines(timeMs: number, nowMs: number): string {
  const days = Math.floor((nowMs - timeMs) / dayMs);
  const when = `the log has no entry within ${aroundMinutes} minutes of ${new Date(timeMs).toISOString()}`;
  if (timeMs > nowMs + aroundMs) return `${when}, which is in the future: check the id`;
  return days >= 1
    ? `${when} (${formatCount(days, 'day')} ago). Logs are kept for a month by default (option logRetention), locally up to 32 MB`
    : `${when}: the call may still run, or its log entry may take a few seconds to appear`;
}

/** The line of a request as the function wrote it, with what its metrics add. */
export type RequestLine = Partial<RequestLog> & {
  outcome?: string;
  FirstContentMs?: number;
  ChargeYuan?: number;
};

export const lineOf = ({ line }: LoggedRequest): RequestLine => line?.fields ?? {};

/** View: what happened to a request, from its line in the log, as steps in the order of time. */
export function explainSteps({ line, events }: LoggedRequest): RequestStep[] {
  // A background response has a line of its acceptance first: who called and what was answered is in those of its end.
  if (!line) return [['logged', events.join(', ')]];
  const fields: RequestLine = line.fields;
  const { passed_over = [], attempts = [], sent = [], dropped = [], facts = {}, reason } = fields;
  const wanted = Object.entries(facts).map(([name, value]) => `${name} ${value}`);
  return keepStepsWithWords([
    ['called', describeCaller(fields)],
    ['for', describeWhom(fields)],
    ['wanted', wanted.join(', ')],
    ['reserved', wanted.length > 0 ? undefined : describeReservation(fields)],
    ...passed_over.map((one): RequestStep => ['skipped', describePassedOver(one)]),
    ...attempts.map((one): RequestStep => [
      `tried${formatPart(' +', one.at, ' ms') ?? ''}`,
      describeAttempt(one),
    ]),
    ['fields', sent.join(' ')],
    ['not sent', dropped.join(' ')],
    ['because', reason],
    ['answered', describeAnswer(fields)],
    ['also logged', events.join(', ')],
  ]);
}

/** The stream that writes ledger rows collects records for 5 s. */
const rowDelayMsMax = 60_000;

/** Explains why a request has no ledger row. Only a call with a reservation logs a charge, and gets a row. */
export function explainMissingRow(logged: LoggedRequest | undefined, nowMs: number): string {
  const { line } = logged ?? {};
  if (line?.fields['charge'] === undefined) return 'Not charged: there is no ledger row.';
  return nowMs - line.atMs < rowDelayMsMax
    ? 'The ledger row is not written yet. Try again in a few seconds.'
    : 'The log has a charge, but the ledger row is missing. Check for failed stream records: npx --no relay-ops doctor';
}

const joinWords = (...parts: (string | undefined)[]): string => parts.filter(Boolean).join(', ');

const formatPart = (before: string, value: string | number | undefined, after = ''): string | undefined =>
  value === undefined ? undefined : `${before}${value}${after}`;

const describeCaller = ({ endpoint = '-', model, alias, account, key_hint }: RequestLine): string =>
  joinWords(
    endpoint,
    formatPart('model ', model),
    formatPart('alias ', alias),
    formatPart('customer ', account) ?? 'unknown key',
    formatPart('key ', key_hint),
  );

const describeReservation = ({ reserved }: RequestLine): string | undefined =>
  reserved &&
  joinWords(
    formatPart('a call of the plan entry ', reserved.plan_slot) ?? formatWrittenMoney(reserved.yuan),
    formatPart('at most ', reserved.max_tokens, ' output tokens'),
    formatPart('limited by the ', reserved.limited_by),
  );

const describeAnswer = ({ status, code, first_text_ms, length, duration_ms, end }: RequestLine): string =>
  joinWords(
    `status ${status ?? '-'}${formatPart(' ', code) ?? ''}`,
    formatPart('first text after ', first_text_ms, ' ms'),
    formatPart('', length, ' characters'),
    formatPart('finished after ', duration_ms, ' ms'),
    end === 'client_gone' ? 'the client had disconnected' : undefined,
  );

const describePassedOver = ({ why, kind, seconds, ...one }: PassedOverLine): string =>
  joinWords(placeOf(one), standingWords[why] ?? why, kind, formatPart('for another ', seconds, ' s'));

const describeAttempt = ({ outcome, ms, status, code, broke_at, forms, stood, ...one }: TriedLine): string =>
  joinWords(
    placeOf(one),
    outcome,
    formatPart(outcome === 'answered' ? 'first content after ' : 'after ', ms, ' ms'),
    formatPart('status ', status),
    formatPart('error code ', code),
    formatPart('broke off at +', broke_at, ' ms'),
    formatPart('tried in ', forms, ' forms'),
    formatPart('was ', stood),
  );

const placeOf = ({ channel, secret }: Pick<TriedLine, 'channel' | 'secret'>): string =>
  `channel ${channel}${formatPart(' (secret ', secret, ')') ?? ''}`;

const standingWords: Readonly<Record<string, string>> = {
  blocked: 'waiting for the Retry-After of its upstream',
  resting: 'in cooldown',
  last: 'failed for this customer before',
  probe: 'its cooldown was over and another call tested it',
  cannot_carry: 'does not support this call',
};
