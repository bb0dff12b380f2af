/**
 * Plans and carries out the lines of a sheet with the plans of single rows: customers, credits and keys. Safe to repeat after a kill at any
 * line: credits and keys have ids, and the caller stores a key's secret before the key exists. Plans nothing if a line is invalid.
 */
import type { WrittenGrant } from '../billing/ledger-row.ts';
import { parseYuan, type NanoYuan } from '../billing/money.ts';
import { textOf } from '../config/rows/read-row.ts';
import { workOnEach } from '../relay/retry.ts';
import { keyHash, keyHint } from '../wire/ids.ts';
import { listTexts } from '../wire/json.ts';
import { compileSettings } from './config/row-changes.ts';
import { planEditAccount } from './customers/edit-account.ts';
import { awaitApplied, carryOutGrant, planGrantAmount, type GrantPlan } from './customers/grants.ts';
import { writeWelcome } from './customers/new-customer.ts';
import { planCreateKey, planEditKey, sheetIdNote } from './keys/edit-key.ts';
import type { OperatorPorts, RawRow, RowWrite } from './operator-ports.ts';
import {
  deniedExitCode,
  Failure,
  formatCount,
  formatInteger,
  formatMoney,
  formatWrittenMoney,
  usageFailure,
} from './plan.ts';
import { carryOutWrites, findAccount } from './rows.ts';
import type { TableName } from '../tables/table-names.ts';

/** Changes of a line for one customer. Attributes are those that differ from the rows. */
export interface SheetLine {
  /** For messages: `line 3`. */
  place: string;
  account: string;
  /** The customer's address after the change, for the result. */
  email?: string;
  customer?: { attributes: RawRow; isNew: boolean };
  credit?: { id: string; amount: string; reason?: string };
  key?: { id: string; hash: string | undefined; attributes: RawRow; isNew: boolean };
}

/** Changes with each key that a sheet creates, so that two concurrent sheets can't both create a key with the same id. */
const lastKeyNote = '_last_key';

type State = 'new' | 'changed' | 'unchanged';

type LinePlan = Awaited<ReturnType<typeof planLine>>;
export type SheetPlan = Awaited<ReturnType<typeof planLines>>;

/** `problem`: why the line was not carried out, or only in part. */
export interface LineOutcome {
  line: SheetLine;
  state: State | 'failed';
  secretKey?: string;
  hash?: string;
  credited?: NanoYuan;
  balance?: NanoYuan;
  problem?: string;
  message?: string[];
}

/** Reads each table once: 500 lines would otherwise read the same tables 500 times. */
export function readTablesOnce(ports: OperatorPorts): OperatorPorts {
  const scans = new Map<TableName, Promise<{ rows: RawRow[]; byKey: Map<unknown, RawRow> }>>();
  const keyNames: Partial<Record<TableName, string>> = { accounts: 'account', keys: 'hash' };
  const scan = async (table: TableName) => {
    // Read accounts first: their notes of the last key must be older than the list of keys.
    if (table === 'keys') await read('accounts');
    const rows = await ports.tables.scan(table);
    return { rows, byKey: new Map(rows.map((row) => [row[keyNames[table] ?? ''], row])) };
  };
  const read = (table: TableName) => {
    const found = scans.get(table) ?? scan(table);
    scans.set(table, found);
    return found;
  };
  let config: ReturnType<OperatorPorts['config']['tables']> | undefined;
  return {
    ...ports,
    tables: override(ports.tables, {
      scan: async (table) => (await read(table)).rows,
      get: async (table, key) =>
        table in keyNames ? (await read(table)).byKey.get(key) : ports.tables.get(table, key),
    }),
    config: override(ports.config, { tables: () => (config ??= ports.config.tables()) }),
  };
}

/** Replaces some methods of a port. A spread would lose the others, because ports are proxies. */
const override = <Port extends object>(port: Port, methods: Partial<Port>): Port =>
  Object.assign(Object.create(port) as Port, methods);

const atOnce = 16;

/** By the place of the line: each line has one problem at most, the first that was found. */
export type Problems = Map<string, string>;

export async function checkLines<Line extends { place: string }, Checked>(
  lines: readonly Line[],
  check: (line: Line) => Promise<Checked> | Checked,
  earlier: Problems = new Map(),
): Promise<{ checked: Checked[]; problems: Problems }> {
  const problems = new Map(earlier);
  const checked: Checked[] = [];
  for (const line of lines)
    try {
      checked.push(await check(line));
    } catch (error) {
      if (!(error instanceof Failure) || error.exitCode === deniedExitCode) throw error;
      problems.set(line.place, error.message.replace(/^nothing was written: /, '').replaceAll('; ', ', '));
    }
  return { checked, problems };
}

/** Throws one usage failure that lists the problems of all lines. */
export function refuseProblems(problems: Problems): void {
  if (problems.size === 0) return;
  const lines = [...problems]
    .map(([place, words]) => `${place}: ${words}`)
    .toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true }));
  const more = lines.length - problemsShown;
  throw usageFailure(
    `csv: ${[...lines.slice(0, problemsShown), ...(more > 0 ? [`and ${formatCount(more, 'more problem')}`] : [])].join('\n')}`,
  );
}

const problemsShown = 50;

/** @param ports should read tables only once (`readTablesOnce`), because every line reads them */
export async function planLines(ports: OperatorPorts, lines: readonly SheetLine[], earlier?: Problems) {
  const grants = new Map<string, WrittenGrant[]>();
  const credited = new Set(lines.flatMap(({ account, credit }) => (credit ? [account] : [])));
  const readGrants = async (account: string): Promise<void> => {
    grants.set(account, (await Array.fromAsync(ports.ledger.grants(account))).flat());
  };
  await workOnEach([...credited], readGrants, atOnce);
  // Only a sheet with key ids needs the whole tables.
  const hasKeys = lines.some(({ key }) => key && key.id !== '');
  const accounts = hasKeys ? await ports.tables.scan('accounts') : [];
  const keys = Map.groupBy(hasKeys ? await ports.tables.scan('keys') : [], (row) => textOf(row, 'account'));
  const { checked: plans, problems } = await checkLines(
    lines,
    (line) => {
      const known = { grants: grants.get(line.account) ?? [], keys: keys.get(line.account) ?? [] };
      return planLine(ports, line, known);
    },
    earlier,
  );
  refuseProblems(problems);
  const changed = plans.filter(({ state }) => state !== 'unchanged');
  const effect = changed.flatMap((plan) => plan.effect);
  const questions = plans.flatMap((plan) => plan.questions);
  const { settings } = await compileSettings(ports);
  const sums = sumUp(plans);
  return {
    changes: plans.flatMap(({ writes, credit, newKey }): RowWrite[] => [
      ...writes,
      ...(credit?.changes ?? []),
      ...(newKey ? [{ kind: 'create' as const, table: 'keys' as const, row: newKey }] : []),
    ]),
    effect:
      changed.length === 0
        ? ['Nothing to change.']
        : listTexts(
            ...sums.lines,
            ...effect.slice(0, effectShown),
            effect.length > effectShown && `and ${formatCount(effect.length - effectShown, 'more change')}`,
          ),
    questions:
      changed.length === 0
        ? []
        : [
            listTexts(
              `Apply ${formatCount(changed.length, 'line')}${sums.total === 0n ? '' : ` and credit ${formatMoney(sums.total)}`}?`,
              questions.length > 0 && 'This includes:',
              ...questions.slice(0, questionsShown),
              questions.length > questionsShown && `And ${questions.length - questionsShown} more.`,
            ).join(' '),
          ],
    warnings: [...new Set(plans.flatMap(({ warnings }) => warnings))],
    lines: plans,
    isGrave: questions.length > 0 || changed.some(({ credit }) => credit && credit.amount < 0n),
    lastKeys: new Map(accounts.map((row) => [row['account'], row[lastKeyNote]])),
    baseUrl: await ports.baseUrl(),
    pages: { models: settings.page, account: settings.accountPage },
  };
}

const effectShown = 200;
const questionsShown = 5;

async function planLine(
  ports: OperatorPorts,
  line: SheetLine,
  { grants, keys }: { grants: readonly WrittenGrant[]; keys: readonly RawRow[] },
) {
  const { account, customer, credit, key } = line;
  const edit =
    customer && isEdited(customer) ? await planEditAccount(ports, { account, ...customer }) : undefined;
  if (!customer && key?.isNew) await findAccount(ports, account);
  const grant =
    credit && (await prefixFailure(customer && 'grant', planCredit(ports, line, { credit, grants })));
  const existing =
    key?.hash !== undefined && isEdited(key)
      ? await prefixFailure(customer && 'key', planEditKey(ports, key.hash, key.attributes))
      : undefined;
  const attributes = key && { ...key.attributes, [sheetIdNote]: key.id };
  const made = key?.isNew
    ? await prefixFailure(customer && 'key', planCreateKey(ports, { account, attributes }))
    : undefined;
  const [newKey] = (made?.changes ?? []).flatMap((write) =>
    write.table === 'keys' && 'row' in write ? [write.row] : [],
  );
  const rows = [edit ?? [], existing ?? []].flat();
  const writes = rows.flatMap(({ changes }) => changes);
  const isChanged = writes.length > 0 || grant?.isWritten === false;
  const state: State = customer?.isNew || newKey ? 'new' : isChanged ? 'changed' : 'unchanged';
  const contact =
    customer?.attributes['contact'] ?? (await ports.tables.get('accounts', account))?.['contact'];
  return {
    line: { ...line, email: textOf(contact, 'email') },
    state,
    /** For the customer's row, or the row of an existing key. */
    writes,
    credit: grant,
    /** The row of a key to create, without hash and hint. */
    newKey,
    /** Effects that the changes of rows do not show. */
    effect: listTexts(
      ...(grant && !grant.isWritten ? grant.effect.slice(-1) : []),
      made && `Create key ${key?.id} for ${account} (${made.rights})`,
    ),
    questions: rows.flatMap(({ questions }) => questions),
    warnings: [...rows, grant, made].flatMap((part) => part?.warnings ?? []),
    /** True if the customer has no other key: then the message with the new key is a welcome. */
    isFirstKey: keys.every((row) => row['hash'] === key?.hash),
  };
}

/** False for a part without attributes, unless it creates its row. */
export const isEdited = (part: SheetLine['customer']): boolean =>
  part !== undefined && (part.isNew || Object.keys(part.attributes).length > 0);

/** In a sheet of customers, prefixes a problem with the part of the line: `grant` and `key` have attributes with the same names. */
const prefixFailure = <Part>(name: string | undefined, work: Promise<Part>): Promise<Part> =>
  work.catch((error: unknown) => {
    if (name === undefined || !(error instanceof Failure) || error.exitCode !== 2) throw error;
    const words = error.message.replace(/^nothing was written: /, '');
    // Names the column, such as `grant.amount`.
    throw usageFailure(`${name}${/^[\w.]+: /.test(words) ? '.' : ': '}${words}`);
  });

/** Plans no changes for a credit that an earlier run wrote. */
async function planCredit(
  ports: OperatorPorts,
  { account, customer }: SheetLine,
  { credit, grants }: { credit: NonNullable<SheetLine['credit']>; grants: readonly WrittenGrant[] },
): Promise<GrantPlan & { isWritten: boolean }> {
  const plan = await planGrantAmount(ports, { account, ...credit, new: customer !== undefined });
  const earlier = grants.find(({ grantId }) => grantId === credit.id);
  if (earlier && parseYuan(earlier.amount) !== plan.amount)
    throw usageFailure(
      `grant "${credit.id}" of ${account} already exists with ${formatWrittenMoney(earlier.amount)}: use another id for another grant`,
    );
  const changes = earlier ? [] : plan.changes.filter(({ table }) => table === 'grants');
  return { ...plan, changes, isWritten: earlier !== undefined };
}

/** The totals that an operator compares with the invoice before confirming. */
function sumUp(plans: readonly LinePlan[]): { lines: string[]; total: NanoYuan } {
  const customers = plans.flatMap((plan) => {
    const { customer } = plan.line;
    return customer ? [stateOf(plan, 'accounts', customer.isNew)] : [];
  });
  const keys = plans.flatMap((plan) => (plan.line.key ? [stateOf(plan, 'keys', plan.line.key.isNew)] : []));
  const credits = plans.flatMap(({ credit }) => credit ?? []);
  const made = credits.filter(({ isWritten }) => !isWritten);
  const total = made.reduce((sum, { amount }) => sum + amount, 0n);
  const credited = `Credit ${formatMoney(total)} in ${formatCount(made.length, 'grant')}; ${formatInteger(credits.length - made.length)} credited before`;
  return {
    lines: [
      ...sumStates('Customers', customers),
      ...(credits.length > 0 ? [credited] : []),
      ...sumStates('Keys', keys),
    ],
    total,
  };
}

function sumStates(noun: string, states: readonly State[]): string[] {
  const words = (['new', 'changed', 'unchanged'] as const).map(
    (state) => `${formatInteger(states.filter((each) => each === state).length)} ${state}`,
  );
  return states.length === 0 ? [] : [`${noun}: ${words.join(', ')}`];
}

const stateOf = ({ writes }: LinePlan, table: TableName, isNew: boolean): State =>
  isNew ? 'new' : writes.some((write) => write.table === table) ? 'changed' : 'unchanged';

export const nameSheetKey = (account: string, id: string): string => JSON.stringify([account, id]);

/** Maps `nameSheetKey` to the row of the key, or of its successor if it was rotated. */
export async function indexSheetKeys({ tables }: OperatorPorts): Promise<Map<string, RawRow>> {
  const rows = await tables.scan('keys');
  const replaced = new Set(rows.map((row) => row['_replaces']));
  const named = rows.filter((row) => textOf(row, sheetIdNote) !== '' && !replaced.has(row['hash']));
  return new Map(named.map((row) => [nameSheetKey(textOf(row, 'account'), textOf(row, sheetIdNote)), row]));
}

interface SheetRun {
  /** Secrets that an interrupted run stored, by `nameSheetKey`. */
  secrets: ReadonlyMap<string, string>;
  /** Stores a secret before its key is created, so that no key exists whose secret is lost. */
  keep: (made: { account: string; id: string; secretKey: string }) => Promise<void>;
  waitMs: number;
}

/** After this many failures, the other lines are skipped: the store or the network is probably down. */
const failuresMax = 20;

/** Runs the lines of one customer in order, and several customers at once. A failed line does not stop the others. */
export async function carryOutLines(
  ports: OperatorPorts,
  plan: SheetPlan,
  run: SheetRun,
): Promise<LineOutcome[]> {
  const outcomes = new Map<LinePlan, LineOutcome>();
  const lastKeys = new Map<string, unknown>();
  let failures = 0;
  const customers = [...Map.groupBy(plan.lines, ({ line }) => line.account).values()];
  const runLines = async (group: readonly LinePlan[]): Promise<void> => {
    for (const each of group) {
      if (failures >= failuresMax) {
        outcomes.set(each, { line: each.line, state: 'failed', problem: 'not tried: too many lines failed' });
        continue;
      }
      try {
        outcomes.set(each, await carryOutLine(ports, each, { plan, run, lastKeys }));
      } catch (error) {
        if (error instanceof Failure && error.exitCode === deniedExitCode) throw error;
        failures += 1;
        outcomes.set(each, { line: each.line, state: 'failed', problem: messageOf(error) });
      }
    }
  };
  await workOnEach(customers, runLines, atOnce);
  const untilMs = ports.clock.now() + run.waitMs;
  const finish = async (each: LinePlan): Promise<void> => {
    const outcome = outcomes.get(each);
    if (outcome) outcomes.set(each, await finishLine(ports, each, { plan, outcome, untilMs }));
  };
  await workOnEach(plan.lines, finish, atOnce);
  return plan.lines.flatMap((each) => outcomes.get(each) ?? []);
}

async function carryOutLine(
  ports: OperatorPorts,
  { line, state, writes, credit, newKey }: LinePlan,
  { plan, run, lastKeys }: { plan: SheetPlan; run: SheetRun; lastKeys: Map<string, unknown> },
): Promise<LineOutcome> {
  const { account, key } = line;
  await carryOutWrites(ports, { changes: writes, effect: [], questions: [] });
  if (credit && !credit.isWritten) await carryOutGrant(ports, credit, 0);
  const kept = key && run.secrets.get(nameSheetKey(account, key.id));
  const done = { line, state, ...(credit && !credit.isWritten && { credited: credit.amount }) };
  if (!key || !newKey) {
    const isKept = kept !== undefined && keyHash(kept) === key?.hash;
    return {
      ...done,
      ...(key?.hash !== undefined && { hash: key.hash }),
      ...(isKept && { secretKey: kept }),
    };
  }
  const secretKey = kept ?? ports.random.secretKey();
  if (kept === undefined) await run.keep({ account, id: key.id, secretKey });
  const previousKey = lastKeys.get(account) ?? plan.lastKeys.get(account);
  const hash = keyHash(secretKey);
  const last = hash.slice(0, 12);
  const lastKeyUpdate = { attributes: { [lastKeyNote]: last }, unchanged: { [lastKeyNote]: previousKey } };
  await ports.tables
    .writeTogether([
      { kind: 'create', table: 'keys', row: { ...newKey, hash, hint: keyHint(secretKey) } },
      { kind: 'update', table: 'accounts', key: { account }, ...lastKeyUpdate },
    ])
    .catch(async (error: unknown) => {
      // Only this run can create a key with this hash, so the write succeeded and its reply was lost.
      if (!(await ports.tables.get('keys', hash))) throw error;
    });
  lastKeys.set(account, last);
  return { ...done, hash, secretKey };
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Waits until the credit is applied, and composes the message for the customer. */
async function finishLine(
  ports: OperatorPorts,
  { line: { account }, credit, isFirstKey }: LinePlan,
  { plan, outcome, untilMs }: { plan: SheetPlan; outcome: LineOutcome; untilMs: number },
): Promise<LineOutcome> {
  if (outcome.state === 'failed') return outcome;
  const { secretKey, credited } = outcome;
  const known: LineOutcome = { ...outcome };
  if (credit && credited !== undefined)
    try {
      const { available } = await awaitApplied(ports, credit, untilMs - ports.clock.now());
      if (available !== undefined) known.balance = available;
    } catch (error) {
      known.problem = messageOf(error);
    }
  const amount = credit && formatMoney(credit.amount);
  if (secretKey === undefined)
    return !credit || credit.amount < 0n
      ? known
      : { ...known, message: [`${amount} was credited to your account ${account}.`] };
  const { message } = writeWelcome(
    { ...plan, account, grant: credit },
    { secretKey, grant: undefined },
    false,
  );
  const opening = `This is a new API key for your account ${account}.${credited === undefined ? '' : ` ${amount} was credited to it.`}`;
  return { ...known, message: isFirstKey ? message : message.with(0, opening) };
}
