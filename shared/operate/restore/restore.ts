/**
 * A restore of the money to one second, in the one order in which nothing is lost or counted twice. It is kept in no file: each
 * step finds in the tables what is done already, so a command that was killed goes on when it is repeated. Rows that are newer
 * than the second are evidence of real charges and payments: none is removed.
 *
 *     close -> quiet -> copies -> rows (ledger, then grants, payments) -> balances -> sums [-> forgive] -> audit -> open -> clean
 */
import { latePrefix } from '../../billing/ledger-row.ts';
import type { NanoYuan } from '../../billing/money.ts';
import type { TableName } from '../../tables/table-names.ts';
import { isoTime } from '../../wire/iso-time.ts';
import { grantRow } from '../customers/grants.ts';
import { auditLedger } from '../ledger/audit-ledger.ts';
import { readingsOf } from '../ledger/ledger.ts';
import type { OperatorPorts, RawRow, RowWrite } from '../operator-ports.ts';
import { formatCount, Failure, formatMoney, type Plan } from '../plan.ts';
import { carryOutWrites, writeSetting } from '../rows.ts';
import {
  carryOutBalances,
  checkBalances,
  findLostRows,
  planBalances,
  type CopyInput,
  type Rebuilding,
} from './balances.ts';

export interface RestoreInput extends CopyInput {
  /** Tables to restore besides the money. */
  others: readonly TableName[];
  /** Give back what calls that ended after the second were charged. */
  forgive: boolean;
  /** Accounts of which it is known that they were charged what no row says any more. */
  accepted: readonly string[];
  /** How long to wait until the relay is quiet, and for functions that react. */
  waitMs: number;
}

interface Restoring extends Rebuilding {
  input: RestoreInput;
  /** Told what is waited for. */
  waiting: (what: string) => void;
}

/** `isOff`: what is said stands in the way of all further steps. */
export interface StepReport {
  said: string[];
  isOff: boolean;
}

type Step = (run: Restoring) => Promise<{ plan: Plan<unknown>; carryOut: () => Promise<StepReport> }>;

const createStep =
  <Change>(
    makePlan: (run: Restoring) => Plan<Change> | Promise<Plan<Change>>,
    carryOut: (run: Restoring, plan: Plan<Change>) => Promise<Partial<StepReport> | void>,
  ): Step =>
  async (run) => {
    const plan = await makePlan(run);
    return { plan, carryOut: async () => ({ said: [], isOff: false, ...(await carryOut(run, plan)) }) };
  };

const quietEffect = 'wait until no call is in flight and every charge has its ledger row';

const steps = {
  close: createStep(planClosing, writeRows),
  quiet: createStep(() => planOf(['wait'], [quietEffect]), awaitQuiet),
  copies: createStep(planCopies, makeCopies),
  check: createStep(planAudit, checkCopies),
  rows: createStep(planRows, putRowsBack),
  balances: createStep(planBalances, carryOutBalances),
  sums: createStep(planSums, correctSums),
  forgive: createStep(planForgiving, writeRows),
  audit: createStep(planAudit, auditAll),
  open: createStep(planOpening, writeRows),
  clean: createStep(planDropping, dropCopies),
};

const ofDrill: ReadonlySet<string> = new Set(['copies', 'check', 'clean']);

/** @param drill copies are made, compared and deleted; nothing else is touched */
export async function restoreSteps(run: Restoring, drill: boolean) {
  const names = Object.keys(steps) as (keyof typeof steps)[];
  const ends = await isEnding(run);
  const wanted = names.filter((name) => {
    if (ends) return name === 'clean';
    if (drill) return ofDrill.has(name);
    return name !== 'check' && (name !== 'forgive' || run.input.forgive);
  });
  return wanted.map((name) => ({ name, prepare: () => steps[name](run) }));
}

const planOf = <Change>(changes: Change[], effect: string[], question?: string): Plan<Change> => ({
  changes,
  effect,
  questions: question === undefined || changes.length === 0 ? [] : [question],
});

async function writeRows({ ports }: Restoring, plan: Plan<RowWrite>): Promise<void> {
  await carryOutWrites(ports, plan);
}

/** `daily` is made from the ledger; `runtime` has nothing that money rests on. */
const money = ['quotas', 'ledger', 'grants', 'payments'] as const;
/** In this order: a grant that comes back before its ledger row would be granted again. */
const rowTables = ['ledger', 'grants', 'payments'] as const;

/** `relay-restore-20261120120000`: the same second finds the same copies. */
export const copyStack = (stack: string, atMs: number): string =>
  `${stack}-restore-${isoTime(atMs).replaceAll(/\D/g, '')}`;

// Notes in the setting that this restore closed the relay, so a relay that somebody else closed stays closed.

async function readClosedRow({ tables }: OperatorPorts) {
  const row = await tables.get('settings', 'relay_closed');
  const write = (attributes: RawRow): RowWrite => writeSetting(row, 'relay_closed', attributes);
  return { note: row?.['_restore'], isClosed: String(row?.['value']) === 'true', write };
}

async function planClosing({ ports, input: { copy } }: Restoring): Promise<Plan<RowWrite>> {
  const { isClosed, write } = await readClosedRow(ports);
  if (isClosed) return planOf<RowWrite>([], ['the relay is already closed']);
  const changes = [write({ value: true, _restore: copy })];
  return planOf(changes, ['refuse all calls until the restore is complete'], 'Close the relay?');
}

async function planOpening({ ports, input: { copy } }: Restoring): Promise<Plan<RowWrite>> {
  const { note, isClosed, write } = await readClosedRow(ports);
  if (!isClosed) return planOf<RowWrite>([], ['the relay is already open']);
  if (note !== copy)
    return planOf<RowWrite>([], ['the relay stays closed because this restore did not close it']);
  const changes = [write({ value: false, _restore: undefined })];
  return planOf(changes, ['accept calls again'], 'Open the relay?');
}

// A restore computes balances from rows. So no call may be in flight, and each close must have its row: otherwise the
// balance would miss a charge.

/** Twice the longest interval at which environments read the configuration. */
const knownByAllMs = 20_000;
const pauseMs = 5_000;

async function awaitQuiet({ ports, input, waiting }: Restoring): Promise<Partial<StepReport>> {
  const { clock, config } = ports;
  const untilMs = clock.now() + input.waitMs;
  const wait = async (what: string, ms = pauseMs): Promise<void> => {
    waiting(what);
    await clock.sleep(ms);
  };
  if (input.waitMs > 0) {
    while (!(await isClosedFor(config))) {
      if (clock.now() > untilMs)
        throw new Failure('the closed state of the relay is not published yet: see `version list`');
      await wait('the published configuration', Math.min(pauseMs, input.waitMs));
    }
    await wait('all environments to read it', Math.min(knownByAllMs, input.waitMs));
  }
  for (;;) {
    const { open, rowless } = await findUnsettled(ports);
    if (open.length === 0 && rowless.length === 0) return {};
    if (clock.now() + pauseMs <= untilMs) {
      await wait(`${formatCount(open.length, 'open call')} and ${formatCount(rowless.length, 'ledger row')}`);
      continue;
    }
    if (open.length > 0)
      throw new Failure(
        `calls of ${open.slice(0, 5).join(', ')} are still in flight: they expire within minutes; re-run then`,
      );
    return {
      said: rowless.map(
        (each) => `the last charge of ${each} has no ledger row: the new balance will not include it`,
      ),
    };
  }
}

async function isClosedFor(config: OperatorPorts['config']): Promise<boolean> {
  const newest = await config.newest();
  return newest !== undefined && (await config.snapshot(newest)).settings.relayClosed;
}

/** Items that cannot be read are what a restore is for. */
async function findUnsettled({ ledger }: OperatorPorts) {
  const open: string[] = [];
  const rowless: string[] = [];
  for await (const page of ledger.accounts())
    for (const account of readingsOf(await ledger.quotas(page)).rows) {
      if (account.open.size > 0) open.push(account.account);
      for (const { last, shard: part } of account.shards ?? [account])
        // A late charge is written with its row, wherever that is.
        if (
          last &&
          !last.id.startsWith(latePrefix) &&
          (await ledger.closedAs(account.account, last.id, part)) === undefined
        )
          rowless.push(`${account.account} (${last.id})`);
    }
  return { open, rowless };
}

// Copies of all tables as of the one second.

const tablesOf = ({ others }: RestoreInput): TableName[] => [...money, ...others];

/** The copy of `quotas` is made first and deleted first: others without it are those of a restore that was done. */
async function isEnding({ ports: { copies }, input }: Restoring): Promise<boolean> {
  const [first, ...others] = await statesOf(copies, input);
  return !isThere(first) && others.some(isThere);
}

const isThere = (status: string | undefined): boolean => status !== undefined && status !== 'DELETING';

const statesOf = (copies: OperatorPorts['copies'], input: RestoreInput) =>
  Promise.all(tablesOf(input).map((table) => copies.status(input.copy, table)));

async function planCopies({ ports, input }: Restoring): Promise<Plan<TableName>> {
  const { copies, target } = ports;
  const wanted = tablesOf(input);
  const states = await statesOf(copies, input);
  const missing = wanted.filter((_, at) => states[at] === undefined);
  const waiting = wanted.filter((_, at) => states[at] !== undefined && states[at] !== 'ACTIVE');
  if (missing.length === 0 && waiting.length === 0) return planOf<TableName>([], ['the copies exist']);
  const { fromMs, toMs } = missing.length > 0 ? await copies.window(missing) : { fromMs: 0, toMs: Infinity };
  const at = isoTime(input.atMs);
  const refusal = `${missing.join(', ')} can't be restored to ${at}: choose a time from ${isoTime(Math.ceil(fromMs / 1000) * 1000)} to ${isoTime(Math.min(toMs, 8.64e15))}`;
  return {
    ...planOf(
      [...missing, ...waiting],
      [
        `restore ${wanted.map((table) => `${target.stack}-${table}`).join(', ')} as of ${at} to copies named ${input.copy}-*`,
      ],
      `Restore ${formatCount(missing.length, 'table')} to copies (takes AWS 20 minutes or more)?`,
    ),
    ...((input.atMs < fromMs || input.atMs > toMs) && { refusal }),
  };
}

async function makeCopies({ ports, input, waiting }: Restoring, { changes }: Plan<TableName>): Promise<void> {
  const { copies, clock } = ports;
  for (const table of changes)
    if ((await copies.status(input.copy, table)) === undefined)
      await copies.make(input.copy, table, input.atMs);
  for (const table of changes)
    for (let pause = 500; ; pause = Math.min(pause * 2, pauseMsMax)) {
      const status = await copies.status(input.copy, table);
      if (status === 'ACTIVE') break;
      // One that AWS begins to make is there within seconds.
      if (status === undefined && pause === pauseMsMax)
        throw new Failure(`the copy of ${table} disappeared before it was complete: re-run the command`);
      waiting(`the copy of ${table}`);
      await clock.sleep(pause);
    }
}

const pauseMsMax = 15_000;

async function planDropping({ ports, input }: Restoring): Promise<Plan<TableName>> {
  const states = await statesOf(ports.copies, input);
  const there = tablesOf(input).filter((_, at) => isThere(states[at]));
  return planOf(there, [`delete ${formatCount(there.length, 'copy', 'copies')}`], 'Delete the copies?');
}

async function dropCopies({ ports, input }: Restoring, { changes }: Plan<TableName>): Promise<void> {
  for (const table of changes) await ports.copies.remove(input.copy, table);
}

// Rows that were written once and are gone, or are not as they were.

async function planRows({ ports, input }: Restoring): Promise<Plan<string>> {
  const effect: string[] = [];
  for (const table of [...rowTables, ...input.others]) {
    let [gone, changed, sum] = [0, 0, 0n];
    for await (const page of ports.copies.lost(input.copy, table))
      for (const { isChanged, amount = 0n } of page) {
        if (isChanged) changed += 1;
        else gone += 1;
        sum += amount;
      }
    if (gone + changed > 0)
      effect.push(
        `${table}: restore ${formatCount(gone, 'deleted row')} and ${formatCount(changed, 'changed row')}, ${formatMoney(sum)} in total`,
      );
  }
  return planOf(effect, effect, 'Restore these rows?');
}

async function putRowsBack({ ports, input }: Restoring): Promise<void> {
  for (const table of [...rowTables, ...input.others])
    for await (const page of ports.copies.lost(input.copy, table))
      for (const row of page) await ports.copies.putBack(row);
}

// Sums of days, and the audit of all.

/** @returns the findings */
async function audit(
  { ports, input, waiting }: Restoring,
  { rebuildDaily = false, waitMs = 0 } = {},
): Promise<string[]> {
  const { findings } = await auditLedger(
    ports,
    { waitMs: Math.min(waitMs, input.waitMs), rebuildDaily, isQuiet: true },
    { waitingFor: waiting },
  );
  return findings;
}

async function planSums(run: Restoring): Promise<Plan<string>> {
  const off = (await audit(run)).filter((finding) => finding.startsWith('daily '));
  return planOf(off, off, `Correct ${formatCount(off.length, 'daily total')}?`);
}

async function correctSums(run: Restoring): Promise<void> {
  await audit(run, { rebuildDaily: true });
}

function planAudit(): Plan<string> {
  return planOf(['audit'], ['verify all balances']);
}

/** The sweeper closes what the copy had open, and the function `grants` applies what was put back. */
const reactionMsMax = 10 * 60_000;

async function auditAll(run: Restoring): Promise<StepReport> {
  const reportWithin = async (waitMs: number): Promise<StepReport> =>
    reportOf(run, 'live', await audit(run, { waitMs }), 'all balances match');
  const now = await reportWithin(0);
  return now.isOff ? reportWithin(reactionMsMax) : now;
}

async function checkCopies(run: Restoring): Promise<StepReport> {
  const { effect } = await planRows(run);
  const { accounts, findings } = await checkBalances(run);
  const all = [...effect.map((each) => `lost since then: ${each}`), ...findings];
  const fine = `${formatCount(accounts, 'account')} of the copy ${accounts === 1 ? 'matches' : 'match'} the ledger, and no row was deleted or changed since`;
  return reportOf(run, 'copy', all, fine);
}

/** Findings from lost rows are reported for accepted accounts too, but do not stop the restore. */
async function reportOf(
  run: Restoring,
  of: 'live' | 'copy',
  findings: readonly string[],
  fine: string,
): Promise<StepReport> {
  const accepted = new Set<string>();
  for (const account of run.input.accepted)
    for (const finding of await findLostRows(run, account, of)) accepted.add(finding);
  const said = findings.map((each) => (accepted.has(each) ? `accepted: ${each}` : each));
  const isOff = findings.some((each) => !accepted.has(each));
  return { said: said.length > 0 ? said : [fine], isOff };
}

// Going back in time, the way of books: no row is struck out, one that gives back is added.

async function planForgiving({ ports, input }: Restoring): Promise<Plan<RowWrite>> {
  const sums = new Map<string, NanoYuan>();
  for await (const page of ports.ledger.ledger({}))
    for (const row of readingsOf(page).rows)
      // A call that no balance paid is not credited.
      if (row.kind !== 'grant' && !row.metered && Date.parse(row.at) > input.atMs)
        sums.set(row.account, (sums.get(row.account) ?? 0n) + row.charge);
  const reason = `calls after ${isoTime(input.atMs)} are not charged`;
  const grant_id = input.copy.slice(ports.target.stack.length + 1);
  const given = [...sums].filter(([, amount]) => amount > 0n);
  const known = new Set(
    (await Array.fromAsync(ports.ledger.grants()))
      .flat()
      .flatMap((each) => (each.grantId === grant_id ? each.account : [])),
  );
  const open = given.filter(([account]) => !known.has(account));
  const changes = open.map(([account, amount]): RowWrite => ({
    kind: 'create',
    table: 'grants',
    row: grantRow({ account, grant_id, reason }, amount),
  }));
  const effect = open.map(([account, amount]) => `credit ${formatMoney(amount)} to ${account}`);
  return planOf(changes, effect, `Credit ${formatCount(changes.length, 'account')}?`);
}
