/**
 * Answers a leaked key: refuses it at once and makes its successor in one transaction, and only then reads what it was used
 * for, so that reading costs no time in which it works.
 */
import { formatYuan, parseYuan, type NanoYuan } from '../../billing/money.ts';
import { findLedgerTimeMs, type CloseRow } from '../../billing/ledger-row.ts';
import { textOf } from '../../config/rows/read-row.ts';
import { hourMs, isoTime, dayMs } from '../../wire/iso-time.ts';
import { chargedOf, selectRows, sumRows } from '../ledger/ledger.ts';
import type { OperatorPorts, RowWrite } from '../operator-ports.ts';
import { formatCount, Failure, formatMoney, quoteShellWord, usageFailure } from '../plan.ts';
import { carryOutKey, warnOfMadeKeys, successorOf, type MadeKey } from './edit-key.ts';
import { findKey, judgeKey, listKeys, type FoundKey } from './list-keys.ts';
import { listTexts } from '../../wire/json.ts';

/** `rights`: what the successor may do; undefined: none is made. `earlier`: it was done before; undefined: it was not. */
export type LeakedKeyPlan = Awaited<ReturnType<typeof planLeakedKey>>;

interface LeakedKeyInput {
  written: string;
  /** Epoch milliseconds. Default: a day before, or before it was refused. */
  sinceMs?: number | undefined;
  alone?: boolean | undefined;
}

export async function planLeakedKey(
  ports: OperatorPorts,
  { written, sinceMs, alone = false }: LeakedKeyInput,
) {
  const found = await findKey(ports, written);
  const { hash, name, row, account } = found;
  const earlier = await findEarlierLeak(ports, found);
  const nowMs = ports.clock.now();
  const since = sinceMs ?? (earlier ? Date.parse(earlier.at) : nowMs) - dayMs;
  if (since >= nowMs) throw usageFailure('--since: use a time in the past');
  const successorRow = successorOf(found, await listKeys(ports, { account }), nowMs);
  const leaked = judgeKey({ ...row, enabled: true }, nowMs);
  const { state, why, row: read } = leaked.state === 'usable' ? judgeKey(successorRow, nowMs) : leaked;
  const hasSuccessor = !earlier && !alone && state === 'usable';
  const refused: RowWrite = {
    kind: 'update',
    table: 'keys',
    key: { hash },
    attributes: { enabled: false, _leaked: isoTime(nowMs) },
    // Two at once make one successor.
    unchanged: { _leaked: undefined },
  };
  const successor: RowWrite = { kind: 'create', table: 'keys', row: successorRow };
  const effect = [
    `Disable ${name} within 30 s`,
    hasSuccessor
      ? `Create a key for ${account} (${why})`
      : alone
        ? 'Create no replacement'
        : `Create no replacement: it would not work (${why})`,
  ];
  return {
    changes: earlier ? [] : [refused, ...(hasSuccessor ? [successor] : [])],
    effect: earlier ? describeEarlierLeak(name, earlier) : effect,
    questions: earlier ? [] : [`Disable ${name} now?`],
    warnings: await warnOfMadeKeys(ports, found),
    together: true as const,
    account,
    name,
    hint: read?.hint ?? '',
    rights: hasSuccessor ? why : undefined,
    use: { account, hash, sinceMs: since },
    earlier,
  };
}

type EarlierLeak = NonNullable<Awaited<ReturnType<typeof findEarlierLeak>>>;

/** Finds what an earlier run did when its reply was lost or somebody else was faster. */
async function findEarlierLeak(ports: OperatorPorts, { hash, row }: FoundKey) {
  const { _leaked: at, account } = row;
  if (typeof at !== 'string') return undefined;
  if (typeof account !== 'string') throw usageFailure('this key has no customer');
  const found = (await listKeys(ports, { account })).find((each) => each.row['_replaces'] === hash);
  const of = (name: string): string => textOf(found?.row, name);
  return { at, successor: found && { state: found.state, hash: of('hash'), hint: of('hint') } };
}

function describeEarlierLeak(name: string, { at, successor }: EarlierLeak): string[] {
  const hash = successor?.hash.slice(0, 12);
  return [
    `${name} was already disabled as leaked at ${at}`,
    successor
      ? `Its replacement is ${successor.hint} (hash ${hash}, ${successor.state}). If it is lost: key rotate ${hash} --grace 0`
      : 'No replacement was created: use key new',
  ];
}

export interface LeakedKeyMade {
  successor: MadeKey | undefined;
  use: KeyUse | undefined;
  problem?: string;
}

/** @param onMade called before the rows are read, which may take long: whoever stops it there has the key */
export async function carryOutLeakedKey(
  ports: OperatorPorts,
  plan: LeakedKeyPlan,
  onMade?: (successor: MadeKey) => void,
): Promise<LeakedKeyMade> {
  const key = await carryOutKey(ports, plan);
  const successor = plan.rights === undefined ? undefined : key;
  if (successor) onMade?.(successor);
  try {
    return { successor, use: await viewKeyUse(ports, plan.use) };
  } catch (error) {
    // The successor is made and must be shown, whatever is wrong with the ledger. What nobody expected is met again where its use is shown.
    if (!successor && !(error instanceof Failure)) throw error;
    const problem = error instanceof Failure ? error.message : 'unexpected error';
    return { successor, use: undefined, problem };
  }
}

/** View: what a key called and spent since a time. `refunded`: of its charges, what refunds of single calls returned. */
export type KeyUse = Awaited<ReturnType<typeof viewKeyUse>>;

/** Ledger rows have so many digits of the hash. */
const digitsOfHash = 12;

export async function viewKeyUse(ports: OperatorPorts, { account, hash, sinceMs }: LeakedKeyPlan['use']) {
  const key = hash.slice(0, digitsOfHash);
  // Read before the calls, of which there may be more than memory holds.
  const refunds = await refundsOf(ports, account);
  let refunded = 0n;
  async function* readKeyPages() {
    for await (const { rows, problems } of selectRows(ports, { account, fromMs: sinceMs })) {
      const own = rows.filter((row): row is CloseRow => row.kind !== 'grant' && row.key === key);
      for (const { id } of own) refunded += refunds.get(id) ?? 0n;
      yield { rows: own, problems };
    }
  }
  const { totals, all: sum, problems } = await sumRows(readKeyPages(), (row) => [hourOf(row), row.model]);
  return {
    sinceMs,
    hours: totals.map(({ groups: [hour = '', model = ''], figures }) => ({ hour, model, figures })),
    sum,
    refunded,
    problems,
  };
}

const hourOf = (row: CloseRow): string => isoTime(Math.floor(findLedgerTimeMs(row) / hourMs) * hourMs);

/** Refunds of single calls by the id of the call: grants named `refund#<id>`, `refund#<id>#2`. */
async function refundsOf({ ledger }: OperatorPorts, account: string): Promise<ReadonlyMap<string, NanoYuan>> {
  const refunds = new Map<string, NanoYuan>();
  for await (const page of ledger.grants(account))
    for (const { grantId, amount } of page) {
      const [, id] = /^refund#([^#]+)/.exec(grantId) ?? [];
      if (id !== undefined) refunds.set(id, (refunds.get(id) ?? 0n) + (parseYuan(amount) ?? 0n));
    }
  return refunds;
}

interface Leak {
  plan: LeakedKeyPlan;
  secretKey: string | undefined;
  use: KeyUse | undefined;
}

const spentOf = ({ sum }: KeyUse): bigint => chargedOf({ figures: sum });

/** The text that the customer is sent: lines, ready to send. */
export function writeLeakMessage({ plan: { account, hint }, secretKey, use }: Leak): string[] {
  return listTexts(
    `Your key ${hint} (account ${account}) was exposed, so we have disabled it.`,
    use &&
      `Since ${isoTime(use.sinceMs)} it made ${formatCount(use.sum.counts.calls ?? 0, 'call')} for ${formatMoney(spentOf(use))}. Please tell us which calls are not yours.`,
    ...(secretKey === undefined
      ? []
      : ['', `Your new key, with the same rights: ${secretKey}`, 'Please replace the old key with it.']),
  );
}

/** @param key first 12 hex digits of its hash, as in ledger rows */
export const nameLeakGrant = (key: string): string => `leaked-${key}`;

export type LeakedRefund = NonNullable<ReturnType<typeof planLeakRefund>>;

/** Refunds what the key spent, less what was refunded; undefined: nothing is left. Its id lets it happen once. */
export function planLeakRefund({ plan: { account, use: wanted }, use }: Omit<Leak, 'secretKey'>) {
  const spent = use ? spentOf(use) - use.refunded : 0n;
  if (spent <= 0n) return undefined;
  const id = nameLeakGrant(wanted.hash.slice(0, digitsOfHash));
  return { account, amount: formatYuan(spent), id, reason: 'calls of a leaked key' };
}

export const refundCommand = ({ account, amount, id, reason }: LeakedRefund): string =>
  `grant new ${quoteShellWord(account)} ${amount} --id ${id} --reason "${reason}"`;
