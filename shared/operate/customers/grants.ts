/** Writes a grant exactly once, and waits until the relay has applied it; and views of grants. */
import { formatYuan, parseYuan, type NanoYuan } from '../../billing/money.ts';
import { unappliedMark, type WrittenGrant } from '../../billing/ledger-row.ts';
import { isAccountOff } from '../../config/rows/account-row.ts';
import { GrantRow } from '../../config/rows/grant-row.ts';
import { readRow } from '../../config/rows/read-row.ts';
import { isoTime } from '../../wire/iso-time.ts';
import { compareCodeUnits, listTexts } from '../../wire/json.ts';
import { ExactNumber, type OperatorPorts, type RawRow, type RowWrite } from '../operator-ports.ts';
import { formatMoney, formatWrittenMoney, Failure, requireValid, usageFailure, type Plan } from '../plan.ts';
import { carryOutWrites, findAccount } from '../rows.ts';

export interface GrantInput {
  account: string;
  /** Yuan as typed, with at most 9 decimals; negative: a correction. */
  amount: string;
  reason?: string | undefined;
  /** Id of the grant: grants with the same id are applied once. Default: a new id. */
  id?: string | undefined;
  new?: boolean | undefined;
}

export interface GrantPlan extends Plan<RowWrite> {
  account: string;
  grantId: string;
  amount: NanoYuan;
  /** The balance before a negative amount. Calls change it, so it is no part of the effect, which must stay the same. */
  balance?: NanoYuan | undefined;
}

export async function planGrantAmount(ports: OperatorPorts, input: GrantInput): Promise<GrantPlan> {
  const { account, reason } = input;
  const now = isoTime(ports.clock.now());
  // Generated ids sort by time.
  const grantId = input.id ?? `${now.replaceAll(/[-:]/g, '')}-${ports.random.hex(4)}`;
  const facts = { account, grant_id: grantId, ...(reason !== undefined && { reason }) };
  const reading = readRow(GrantRow, { ...facts, amount: input.amount });
  const { amount } = requireValid(reading, 'nothing was written: ').row;
  const found = await findAccount(ports, account, input.new);
  const balance = amount < 0n ? await readBalance(ports, account) : undefined;
  const refusal = input.id === undefined ? await findRepeatedGrant(ports, account, amount) : undefined;
  return {
    changes: [
      ...found.changes,
      { kind: 'create', table: 'grants', row: grantRow({ ...facts, _created: now }, amount) },
    ],
    effect: [...found.effect, grantEffect({ account, amount, grantId })],
    questions: [
      amount < 0n
        ? `Take ${formatMoney(-amount)} from ${account}?`
        : `Credit ${formatMoney(amount)} to ${account}?`,
    ],
    ...(refusal !== undefined && { refusal }),
    warnings: listTexts(
      isAccountOff(found.row) && `${account} is disabled: its keys are rejected`,
      balance !== undefined && balance + amount < 0n && `this takes more than the balance of ${account}`,
    ),
    account,
    grantId,
    amount,
    balance,
  };
}

async function readBalance({ ledger }: OperatorPorts, account: string): Promise<NanoYuan | undefined> {
  const quota = await ledger.quota(account);
  return quota && 'problem' in quota ? undefined : (quota?.row.available ?? 0n);
}

export const grantRow = (facts: RawRow, amount: NanoYuan): RawRow => ({
  ...facts,
  ...unappliedMark,
  amount: new ExactNumber(formatYuan(amount)),
});

export const grantEffect = ({ account, amount, grantId }: Omit<GrantPlan, keyof Plan<RowWrite>>): string =>
  amount < 0n
    ? `Take ${formatMoney(-amount)} from ${account} (grant "${grantId}")`
    : `Credit ${formatMoney(amount)} to ${account} (grant "${grantId}")`;

/** For so long a second command with the same amount is taken for a repeat of the first. */
export const repeatMs = 10 * 60_000;
const looked = 20;

/** When a generated id was made, in epoch milliseconds; undefined: somebody chose it. */
function parseGeneratedTime(grantId: string): number | undefined {
  const [, date = '', time = ''] = /^(\d{8})T(\d{6})Z-[0-9a-f]{8}$/.exec(grantId) ?? [];
  const iso = `${date.replace(/(....)(..)/, '$1-$2-')}T${time.replace(/(..)(..)/, '$1:$2:')}Z`;
  return date === '' ? undefined : Date.parse(iso);
}

/**
 * Why a grant with a generated id is not made: its command repeats one whose reply was lost, or that was stopped after its
 * write. Reads one page. Undefined: nothing like it was granted in the last ten minutes.
 */
async function findRepeatedGrant({ pages, clock }: OperatorPorts, account: string, amount: NanoYuan) {
  const { grants } = await pages.grants(account, looked);
  const again = grants.find(
    ({ grantId, amount: written }) =>
      parseYuan(written) === amount && (parseGeneratedTime(grantId) ?? 0) > clock.now() - repeatMs,
  );
  return again
    ? `${formatWrittenMoney(again.amount)} was credited to ${account} minutes ago (grant "${again.grantId}"). If this is another grant, give it its own --id`
    : undefined;
}

/** @returns the writes that were made; the grant's is missing if an earlier run wrote the same grant */
async function writeGrant(ports: OperatorPorts, plan: GrantPlan): Promise<RowWrite[]> {
  const { grantId, amount, changes } = plan;
  const made = await carryOutWrites(ports, plan).catch((error: unknown) => {
    // The row was there, or may not be written: nothing is open.
    const isCertain =
      error instanceof Failure &&
      (error.exitCode !== 1 || changes.some(({ conflict }) => conflict === error));
    throw isCertain ? error : wrapWriteError(error, `${nameOf(plan)} may or may not be written`);
  });
  if (made.some(({ table }) => table === 'grants')) return made;
  // A command that is repeated with the same id finds the row of its earlier run.
  const there = await findGrant(ports, plan);
  if (there && parseYuan(there.amount) === amount) return made;
  throw new Failure(
    `grant "${grantId}" already exists with ${there ? formatWrittenMoney(there.amount) : 'another amount'}: choose another --id`,
  );
}

type GrantOf = Pick<GrantPlan, 'account' | 'grantId'>;

const nameOf = ({ account, grantId }: GrantOf): string => `grant "${grantId}" of ${account}`;

/** If only the reply was lost, repeating the command under another id would credit the amount twice. */
const wrapWriteError = (error: unknown, what: string): Failure =>
  new Failure(
    `${error instanceof Error ? error.message : String(error)}; ${what}: check with \`grant show\` before you try again`,
  );

export async function findGrant({ ledger }: OperatorPorts, { account, grantId }: GrantOf) {
  const grants = (await Array.fromAsync(ledger.grants(account))).flat();
  return grants.find((grant) => grant.grantId === grantId);
}

/** `available`: the balance afterwards; absent: the grant is not applied yet, or the item cannot be read. */
export type GrantMade = Awaited<ReturnType<typeof carryOutGrant>>;

export const carryOutGrant = async (ports: OperatorPorts, plan: GrantPlan, waitMs: number) => ({
  made: await writeGrant(ports, plan),
  ...(await awaitApplied(ports, plan, waitMs)),
});

const pauseMs = 300;

export async function awaitApplied(
  ports: OperatorPorts,
  of: GrantOf,
  waitMs: number,
): Promise<{ isApplied: boolean; available?: NanoYuan }> {
  const { clock, ledger } = ports;
  const untilMs = clock.now() + waitMs;
  const failAfterWrite = (error: unknown): never => {
    throw wrapWriteError(error, `${nameOf(of)} is saved`);
  };
  for (;;) {
    const grant = await findGrant(ports, of).catch(failAfterWrite);
    if (grant?.problem !== undefined) throw new Failure(`the relay rejects it: ${grant.problem}`);
    if (grant?.applied !== undefined) break;
    if (clock.now() + pauseMs > untilMs) return { isApplied: false };
    await clock.sleep(pauseMs);
  }
  const quota = await ledger.quota(of.account).catch(failAfterWrite);
  return { isApplied: true, ...(quota && 'row' in quota && { available: quota.row.available }) };
}

export interface GrantsWanted {
  account?: string | undefined;
  /** Only those that the relay has not applied, or does not take. */
  open?: boolean | undefined;
  limit: number;
}

/** Do not print an invalid amount: it may hold anything. */
export const hideInvalidAmount = (grant: WrittenGrant): WrittenGrant => ({
  ...grant,
  amount: parseYuan(grant.amount) === undefined ? '?' : grant.amount,
});

/** View: grants, those that are not applied first, then the newest, of all accounts or of one. */
export async function listGrants({ ledger }: OperatorPorts, { account, open = false, limit }: GrantsWanted) {
  const found: WrittenGrant[] = [];
  for await (const page of ledger.grants(account)) {
    found.push(...page.filter(({ applied }) => !open || applied === undefined));
  }
  return {
    grants: found.toSorted(compareGrants).slice(0, limit).map(hideInvalidAmount),
    count: found.length,
  };
}

const compareGrants = (a: WrittenGrant, b: WrittenGrant): number =>
  compareCodeUnits(b.applied ?? '~', a.applied ?? '~') || compareCodeUnits(b.grantId, a.grantId);

export async function showGrant(
  ports: OperatorPorts,
  { account, id }: { account: string; id: string },
): Promise<WrittenGrant> {
  const found = await findGrant(ports, { account, grantId: id });
  if (!found) throw usageFailure(`${account} has no grant "${id}": see \`grant list --account ${account}\``);
  return hideInvalidAmount(found);
}
