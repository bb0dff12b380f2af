/** View: everything that is known of a request: its lines in the log, its ledger row, the configuration of its time. */
import { Failure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import { askedId, type AskedId } from './asked-id.ts';
import { findRequest, type FoundRequest } from './find-request.ts';
import { loggedRequests, type LoggedRequest } from './logged-request.ts';

export interface ExplainedRequest {
  id: string;
  /** Undefined: nothing was charged, and nothing is reserved. */
  found: FoundRequest | undefined;
  /** Undefined: the log has no line of it. */
  logged: LoggedRequest | undefined;
  /** Why the log has no line, or none of the end. */
  note: string | undefined;
  /** The configuration that was in force. Undefined: it is not kept any more, or nothing was asked of one. */
  version: number | undefined;
  /** The one that is in force. */
  servedVersion: number | undefined;
}

/** @param written as a client saw it, or the beginning of it. Throws a Failure when nothing is known. */
export async function explainRequest(ports: OperatorPorts, written: string): Promise<ExplainedRequest> {
  const asked = askedId(written);
  const { requests, note } = await loggedRequests(ports, asked);
  const [logged, ...others] = requests;
  if (others.length > 0)
    throw new Failure(`several requests begin so: ${requests.map(({ id }) => id).join(', ')}`);
  const id = logged?.id ?? asked.text;
  if (!logged && !asked.isWhole)
    throw new Failure(`${id}: ${note}; with all 26 characters the ledger can be asked, too`);
  const found = await inTables(ports, { id, logged, note });
  const known = { id, found, logged, note: endNote({ found, logged }) ?? note };
  return { ...known, ...(await versionsAt(ports, asked)) };
}

/** What the tables know of an end that the log does not. */
function endNote({ found, logged }: Pick<ExplainedRequest, 'found' | 'logged'>): string | undefined {
  if (logged?.line) return undefined;
  if (found?.kind === 'booked' && found.row.kind === 'expired' && !found.late)
    return 'the log has no line of its end: the function died before it could write one';
  return logged && found?.kind === 'open' ? 'its line in the log is written when it ends' : undefined;
}

/** A call that has ended and has no row was refused or free of charge. */
async function inTables(
  ports: OperatorPorts,
  { id, logged, note }: Pick<ExplainedRequest, 'id' | 'logged' | 'note'>,
): Promise<FoundRequest | undefined> {
  try {
    return await findRequest(ports, id, { mayBeOpen: logged?.line === undefined });
  } catch (error) {
    if (!(error instanceof Failure) || error.exitCode !== 1 || !error.message.startsWith('no ledger row'))
      throw error;
    if (logged) return undefined;
    throw new Failure(`${error.message}; ${note}`);
  }
}

/** A version is in force within seconds of its publication. */
async function versionsAt(
  { config }: OperatorPorts,
  { timeMs }: AskedId,
): Promise<Pick<ExplainedRequest, 'version' | 'servedVersion'>> {
  const versions = await config.versions({ sinceMs: timeMs });
  const version = versions.find(({ publishedAt }) => publishedAt * 1000 <= timeMs);
  return { version: version?.version, servedVersion: versions[0]?.version };
}
