/**
 * Plans and carries out the lines of a sheet by the plans of single rows: customers, credits and keys. It is safe to repeat after a kill at any
 * line: credits and keys have ids, and the caller keeps the secret of a key before the key exists. Nothing is planned if a line is invalid.
 */
import type { WrittenGrant } from '../billing/ledger-row.ts';
import { parseYuan, type NanoYuan } from '../billing/money.ts';
import { textOf } from '../config/rows/read-row.ts';
import { workOnEach } from '../relay/retry.ts';
import { keyHash, keyHint } from '../wire/ids.ts';
import { canonicalJson } from '../wire/json.ts';
import { compileSettings } from './config/row-changes.ts';
import { planEditAccount } from './customers/edit-account.ts';
import { awaitApplied, carryOutGrant, planGrantAmount, type GrantPlan } from './customers/grants.ts';
import { writeWelcome } from './customers/new-customer.ts';
import { planCreateKey, planEditKey, sheetIdNote } from './keys/edit-key.ts';
import type { OperatorPorts, RawRow, RowWrite } from './operator-ports.ts';
import { deniedExitCode, Failure, formatCount, formatInteger, formatMoney, usageFailure } from './plan.ts';
import { carryOutWrites, findAccount } from './rows.ts';
import type { TableName } from '../tables/table-names.ts';

/** Changes of a line for one customer. Attributes are those that differ from the rows. */
export interface SheetLine {
  /** For messages: `line 3`. */
  place: string;
  account: string;
  /** Present if the line is about the customer's row, which it creates if there is none. */
  customer?: { attributes: RawRow; isNew: boolean };
  credit?: { id: string; amount: string; reason?: string };
  key?: { id: string; hash: string | undefined; attributes: RawRow; isNew: boolean };
}

/** Changes with each key that a sheet creates, so that two sheets applied at once cannot both create a key of one id. */
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
    // The accounts first: the note of their last keys must be older than the list of keys.
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

/** The rest of a port stays as it is: ports are proxies, which a spread would empty. */
const override = <Port extends object>(port: Port, methods: Partial<Port>): Port =>
  Object.assign(Object.create(port) as Port, methods);

const atOnce = 16;

/** By the place of the line: each line has one problem at most, the first that was found. */
export type Problems = Map<string, string>;

/** Runs the check of each line that has no problem yet, and adds the problems found. */
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

/** Throws one usage failure that has the problems of all lines. */
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

/** @param ports should read tables once (`readTablesOnce`), because each line reads */
export async function planLines(ports: OperatorPorts, lines: readonly SheetLine[], earlier?: Problems) {
  const grants = new Map<string, WrittenGrant[]>();
  const credited = new Set(lines.flatMap(({ account, credit }) => (credit ? [account] : [])));
  const readGrants = async (account: string): Promise<void> => {
    grants.set(account, (await Array.fromAsync(ports.ledger.grants(account))).flat());
  };
  await workOnEach([...credited], readGrants, atOnce);
  // Only a sheet with ids of keys needs the whole tables.
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
        : [
            ...sums.lines,
            ...effect.slice(0, effectShown),
            ...(effect.length > effectShown
              ? [`and ${formatCount(effect.length - effectShown, 'more change')}`]
              : []),
          ],
    questions:
      changed.length === 0
        ? []
        : [
            [
              `Apply ${formatCount(changed.length, 'line')}${sums.total === 0n ? '' : ` and credit ${formatMoney(sums.total)}`}?`,
              ...(questions.length > 0 ? ['This includes:', ...questions.slice(0, questionsShown)] : []),
            ].join(' '),
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
const questionsShown = 20;

async function planLine(
  ports: OperatorPorts,
  line: SheetLine,
  { grants, keys }: { grants: readonly WrittenGrant[]; keys: readonly RawRow[] },
) {
  const { account, customer, credit, key } = line;
  const edit =
    customer && isEdited(customer) ? await planEditAccount(ports, { account, ...customer }) : undefined;
  if (!customer && key?.isNew) await findAccount(ports, account);
  const grant = credit && (await namePart(customer && 'grant', planCredit(ports, line, { credit, grants })));
  const existing =
    key?.hash !== undefined && isEdited(key)
      ? await namePart(customer && 'key', planEditKey(ports, key.hash, key.attributes))
      : undefined;
  const attributes = key && { ...key.attributes, [sheetIdNote]: key.id };
  const made = key?.isNew
    ? await namePart(customer && 'key', planCreateKey(ports, { account, attributes }))
    : undefined;
  const [newKey] = (made?.changes ?? []).flatMap((write) =>
    write.table === 'keys' && 'row' in write ? [write.row] : [],
  );
  const rows = [edit ?? [], existing ?? []].flat();
  const writes = rows.flatMap(({ changes }) => changes);
  const isChanged = writes.length > 0 || grant?.isWritten === false;
  const state: State = customer?.isNew || newKey ? 'new' : isChanged ? 'changed' : 'unchanged';
  return {
    line,
    state,
    /** For the customer's row, or the row of an existing key. */
    writes,
    credit: grant,
    /** The row of a key to create, without hash and hint. */
    newKey,
    effect: [
      ...rows.flatMap(({ changes, effect }) => (changes.length > 0 ? effect : [])),
      ...(grant && !grant.isWritten ? grant.effect.slice(-1) : []),
      ...(made ? [`Create key ${key?.id} for ${account} (${made.rights})`] : []),
    ],
    questions: rows.flatMap(({ questions }) => questions),
    warnings: [...rows, grant, made].flatMap((part) => part?.warnings ?? []),
    /** The customer has no other key, so that a new one goes with a welcome. */
    isFirstKey: keys.every((row) => row['hash'] === key?.hash),
  };
}

/** A part without attributes changes nothing, unless it creates its row. */
export const isEdited = (part: SheetLine['customer']): boolean =>
  part !== undefined && (part.isNew || Object.keys(part.attributes).length > 0);

/** In a sheet of customers, a problem of a grant or a key says so: both have attributes of the same names. */
const namePart = <Part>(name: string | undefined, work: Promise<Part>): Promise<Part> =>
  work.catch((error: unknown) => {
    if (name === undefined || !(error instanceof Failure) || error.exitCode !== 2) throw error;
    throw usageFailure(`${name}: ${error.message.replace(/^nothing was written: /, '')}`);
  });

/** A credit that an earlier run wrote has no changes. */
async function planCredit(
  ports: OperatorPorts,
  { account, customer }: SheetLine,
  { credit, grants }: { credit: NonNullable<SheetLine['credit']>; grants: readonly WrittenGrant[] },
): Promise<GrantPlan & { isWritten: boolean }> {
  const plan = await planGrantAmount(ports, { account, ...credit, new: customer !== undefined });
  const earlier = grants.find(({ grantId }) => grantId === credit.id);
  if (earlier && parseYuan(earlier.amount) !== plan.amount)
    throw usageFailure(
      `grant "${credit.id}" of ${account} already exists with ¥${earlier.amount}: use another id for another credit`,
    );
  const changes = earlier ? [] : plan.changes.filter(({ table }) => table === 'grants');
  return { ...plan, changes, isWritten: earlier !== undefined };
}

/** The sums that an operator compares with the invoice before the one confirmation. */
function sumUp(plans: readonly LinePlan[]): { lines: string[]; total: NanoYuan } {
  const customers = plans.flatMap((plan) => {
    const { customer } = plan.line;
    return customer ? [stateOf(plan, 'accounts', customer.isNew)] : [];
  });
  const keys = plans.flatMap((plan) => (plan.line.key ? [stateOf(plan, 'keys', plan.line.key.isNew)] : []));
  const credits = plans.flatMap(({ credit }) => credit ?? []);
  const made = credits.filter(({ isWritten }) => !isWritten);
  const total = made.reduce((sum, { amount }) => sum + amount, 0n);
  const credited = `Credits: ${formatMoney(total)} in ${formatCount(made.length, 'grant')}; ${formatInteger(credits.length - made.length)} credited before`;
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

/** A sheet and the confirmation of it have the same text, whatever order the store returns rows in. */
export const basisOfSheet = ({ changes }: SheetPlan): string => canonicalJson(changes) ?? '';

export const nameSheetKey = (account: string, id: string): string => JSON.stringify([account, id]);

/** Keys by `nameSheetKey`: of a key that was rotated its successor. */
export async function indexSheetKeys({ tables }: OperatorPorts): Promise<Map<string, RawRow>> {
  const rows = await tables.scan('keys');
  const replaced = new Set(rows.map((row) => row['_replaces']));
  const named = rows.filter((row) => textOf(row, sheetIdNote) !== '' && !replaced.has(row['hash']));
  return new Map(named.map((row) => [nameSheetKey(textOf(row, 'account'), textOf(row, sheetIdNote)), row]));
}

interface SheetRun {
  /** Secrets that an interrupted run kept, by `nameSheetKey`. */
  secrets: ReadonlyMap<string, string>;
  /** Keeps a secret before its key is created, so that no key exists whose secret is lost. */
  keep: (made: { account: string; id: string; secretKey: string }) => Promise<void>;
  waitMs: number;
}

/** So many lines may fail before the rest is not tried: then it is the store or the network that fails. */
const failuresMax = 20;

/** Lines of one customer run one after another, customers at once. A line that fails does not stop the others. */
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
  const seen = lastKeys.get(account) ?? plan.lastKeys.get(account);
  const hash = keyHash(secretKey);
  const last = hash.slice(0, 12);
  const noted = { attributes: { [lastKeyNote]: last }, unchanged: { [lastKeyNote]: seen } };
  await ports.tables
    .writeTogether([
      { kind: 'create', table: 'keys', row: { ...newKey, hash, hint: keyHint(secretKey) } },
      { kind: 'update', table: 'accounts', key: { account }, ...noted },
    ])
    .catch(async (error: unknown) => {
      // Nobody else can create a key of this hash: the write was made, and its reply was lost.
      if (!(await ports.tables.get('keys', hash))) throw error;
    });
  lastKeys.set(account, last);
  return { ...done, hash, secretKey };
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Waits until the credit is applied, and writes the message for the customer. */
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
