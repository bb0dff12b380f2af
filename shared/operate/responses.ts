/**
 * Stored responses for operators: one found without its content, how much an account has stored, the content of one shown to an
 * operator who says why, and one deleted. The account, which is part of the key, is found in the ledger.
 */
import type { ResponseHead, StoredResponse } from '../relay/ports/stored.ts';
import { requestTimeMs } from '../wire/ids.ts';
import { Failure, usageFailure, type Plan } from './plan.ts';
import type { OperatorPorts, StoredRow, RowWrite } from './operator-ports.ts';
import { findRequest } from './requests/find-request.ts';
import { findAccount, carryOutWrites } from './rows.ts';
import { isoTime } from '../wire/iso-time.ts';

interface ResponseInput {
  /** As clients have it, or its request id. */
  id: string;
  /** By default the account of the call's ledger row. */
  account?: string | undefined;
}

export async function findResponse(
  ports: OperatorPorts,
  { id: written, account }: ResponseInput,
): Promise<ResponseHead> {
  const requestId = written.trim().replace(/^resp-/, '');
  if (requestTimeMs(requestId) === undefined)
    throw usageFailure('invalid response id: expected resp- and the 26 characters of its request id');
  const owner = account ?? (await ownerOf(ports, requestId));
  const head = await ports.responses.head(owner, `resp-${requestId}`);
  if (head) return head;
  throw new Failure(
    `${owner} has no stored response resp-${requestId}: it was not stored, was deleted or has expired`,
  );
}

async function ownerOf(ports: OperatorPorts, requestId: string): Promise<string> {
  const found = await findRequest(ports, requestId);
  return found.kind === 'open' ? found.account : found.row.account;
}

/**
 * How much an account has stored, without reading any of it. `sums`: of what has not expired.
 * `expired`: items that DynamoDB has not removed yet. `lastExpires`: Unix seconds; undefined: nothing is stored.
 */
export async function sumResponses(ports: OperatorPorts, account: string) {
  await findAccount(ports, account);
  const now = Math.floor(ports.clock.now() / 1000);
  const sums = { responses: createEmptySum(), events: createEmptySum(), results: createEmptySum() };
  let expired = 0;
  let lastExpires: number | undefined;
  for await (const rows of ports.responses.rows(account)) {
    for (const row of rows) {
      const kind = kindOf(row);
      if (row.expires <= now) expired += 1;
      else if (kind) {
        sums[kind].count += 1;
        sums[kind].bytes += row.bytes;
        lastExpires = Math.max(lastExpires ?? 0, row.expires);
      }
    }
  }
  return { account, sums, expired, lastExpires };
}

const forms = {
  responses: /^resp-[^#]+$/,
  events: /^resp-[^#]+#e#\d+$/,
  results: /^resp-[^#]+#result$/,
};
type StoredKind = keyof typeof forms;
export const storedKinds = Object.keys(forms) as StoredKind[];

const createEmptySum = () => ({ count: 0, bytes: 0 });
/** Further parts of an item have no kind of their own; their bytes are counted with it. */
const kindOf = ({ id }: StoredRow): StoredKind | undefined =>
  storedKinds.find((kind) => forms[kind].test(id));

/** How long it is known who read what. */
const recordedSeconds = 400 * 24 * 60 * 60;
const suffixBytes = 4;

/** The record names the caller, as AWS knows them. */
export async function planShowContent(
  ports: OperatorPorts,
  head: ResponseHead,
  reason: string | undefined,
): Promise<Plan<RowWrite> & { head: ResponseHead }> {
  if (reason === undefined || reason.trim() === '')
    throw usageFailure('--content requires --reason, because reading content is recorded');
  const nowMs = ports.clock.now();
  const { account, id } = head;
  const by = await ports.operator();
  const row = {
    id: `content-read#${isoTime(nowMs)}#${ports.random.hex(suffixBytes)}`,
    account,
    response: id,
    by,
    reason,
    expires: Math.floor(nowMs / 1000) + recordedSeconds,
  };
  const conflict = new Failure('nothing was read: re-run the command');
  return {
    head,
    changes: [{ kind: 'create', table: 'runtime', row, conflict }],
    effect: [`Record that ${by} reads ${id} (${row.id})`],
    questions: [],
  };
}

/** Must never read the content before the record of who reads it is written. */
export async function carryOutShowContent(
  ports: OperatorPorts,
  plan: Plan<RowWrite> & { head: ResponseHead },
): Promise<StoredResponse> {
  await carryOutWrites(ports, plan);
  const { account, id } = plan.head;
  const found = await ports.responses.read(account, id);
  if (!found) throw new Failure(`${id} was deleted or has expired in the meantime`);
  return found;
}

type Deletion = Pick<ResponseHead, 'account' | 'id'>;

/** As its customer could. A run that is answering it notices, and is settled. */
export function planDeleteResponse({ account, id, status }: ResponseHead): Plan<Deletion> {
  const runs = status === 'queued' || status === 'in_progress';
  return {
    changes: [{ account, id }],
    effect: [
      `Delete ${id} of ${account} (${status}) and its events; conversations that build on it can't continue`,
      ...(runs ? ['Stop its run and charge what it used'] : []),
    ],
    questions: [`Delete ${id}? This can't be undone.`],
  };
}

export async function carryOutDeleteResponse(
  { responses }: OperatorPorts,
  { changes }: Plan<Deletion>,
): Promise<void> {
  for (const { account, id } of changes)
    if (!(await responses.remove(account, id)))
      throw new Failure(`${account} no longer has the stored response ${id}`);
}
