/** Idempotency claims in `runtime`: {id, request, body, members, state, until, expires}. States of a row: */
import { hash } from 'node:crypto';
import type {
  ClaimReply,
  IdempotencyClaimWrite,
  IdempotencyStore,
} from '../../relay/ports/runtime-stores.ts';
import { bucketOf, formatLedgerPartition } from '../../billing/ledger-row.ts';
import { firstCounter } from '../../billing/shares.ts';
import type { Clock } from '../../relay/ports/host.ts';
import { buildExpressions, Table, type Attributes, type TableClient } from './table-client.ts';

const keptSeconds = 24 * 60 * 60;

const neverClaimed = 'attribute_not_exists(id)';
/** DynamoDB removes expired rows late. */
const isExpired = '#expires < :now';
const isFree = '#state = :free';
/** The client repeats writes whose reply was lost. */
const isOwnClaim = '#request = :request';

/** By the ledger, the call ended without an answer or crashed without a charge. */
const isClosed = '(#state = :running AND #request = :first)';

const mayClaim = [neverClaimed, isExpired, isFree, isOwnClaim].join(' OR ');

export function createIdempotencyStore(client: TableClient, clock: Clock, stack: string): IdempotencyStore {
  const table = new Table(client, stack, 'runtime');
  const ledger = new Table(client, stack, 'ledger');

  const readCloseKind = async (account: string, id: string): Promise<string | undefined> =>
    (await ledger.get({ account, id }, { ProjectionExpression: 'kind' }))?.['kind']?.S;

  /** @param closedId the closed call whose claim may be taken over */
  const put = async (claim: IdempotencyClaimWrite, closedId?: string): Promise<ClaimReply> => {
    const now = Math.floor(clock.now() / 1000);
    const row = buildRow(claim, now);
    const condition = buildExpressions(
      { ConditionExpression: closedId === undefined ? mayClaim : `${mayClaim} OR ${isClosed}` },
      {
        ':now': now,
        ':free': 'free',
        ':request': claim.requestId,
        ...(closedId !== undefined && { ':first': closedId, ':running': 'running' }),
      },
    );
    const reply = await table.put(row, { ...condition, ReturnValuesOnConditionCheckFailure: 'ALL_OLD' });
    if (reply.done) return { state: 'claimed' };
    const { item = {} } = reply;
    const requestId = item['request']?.S ?? '';
    if (closedId === undefined && isRunning(item)) {
      // It is unknown whether the request drew a counter.
      const bucket = bucketOf(requestId, firstCounter);
      const bucketed = formatLedgerPartition({ account: claim.account, bucket });
      const kind =
        (await readCloseKind(claim.account, requestId)) ?? (await readCloseKind(bucketed, requestId));
      // A settled call is never repeated, even if the end of its claim was lost.
      const mayRepeat = kind === undefined ? Number(item['until']?.N) < now : kind !== 'settled';
      if (mayRepeat) return put(claim, requestId);
      if (kind === 'settled') return answerTakenKey({ ...item, state: { S: 'completed' } }, row);
    }
    return answerTakenKey(item, row);
  };

  return {
    claim: (claim) => put(claim),
    async finish(claim, free) {
      const write = buildExpressions(
        { UpdateExpression: 'SET #state = :state', ConditionExpression: isOwnClaim },
        { ':state': free ? 'free' : 'completed', ':request': claim.requestId },
      );
      await table.update({ id: buildRowId(claim) }, write);
    },
  };
}

const hashText = (text: string): string => hash('sha256', text);
const buildRowId = ({ owner, idempotencyKey }: IdempotencyClaimWrite): string =>
  `request#${hashText(`${owner}\n${idempotencyKey}`)}`;

const isRunning = (item: Attributes): boolean => item['state']?.S === 'running';

function buildRow(claim: IdempotencyClaimWrite, now: number) {
  const body = hashText(JSON.stringify(claim.body));
  const members = claim.namesMembers ? hashMembers(claim.body) : undefined;
  return {
    id: buildRowId(claim),
    request: claim.requestId,
    body,
    ...(members && { members }),
    state: 'running',
    until: Math.ceil(claim.untilMs / 1000),
    expires: now + keptSeconds,
  };
}

/** Bounds keep a row within one write unit. */
const membersMax = 24;
const memberNameMax = 32;

/** Short hashes of the body's members, to name the one that differs. Undefined: too many, or no object. */
function hashMembers(body: unknown): Record<string, string> | undefined {
  const sent: unknown = Array.isArray(body) ? body.at(-1) : undefined;
  if (typeof sent !== 'object' || sent === null) return undefined;
  const members = Object.entries(sent);
  if (members.length > membersMax || members.some(([name]) => name.length > memberNameMax)) return undefined;
  return Object.fromEntries(
    members.map(([name, value]) => [name, hashText(JSON.stringify(value)).slice(0, 12)]),
  );
}

function answerTakenKey(
  item: Attributes,
  asked: { body: string; members?: Record<string, string> },
): ClaimReply {
  const requestId = item['request']?.S ?? '';
  if (item['body']?.S === asked.body) return { state: isRunning(item) ? 'running' : 'completed', requestId };
  const first = item['members']?.M;
  const names = first && asked.members ? Object.keys({ ...first, ...asked.members }).toSorted() : [];
  const differs = names.find((name) => first?.[name]?.S !== asked.members?.[name]);
  return { state: 'other_body', requestId, ...(differs !== undefined && { differs }) };
}
