/**
 * Makes keys and changes their rows: a new key for an account, a successor of an old one, other rights, off and on. A key that
 * is made is in the result and stored nowhere. `carryOutWrites` carries out plans that make none.
 */
import { isAccountOff } from '../../config/rows/account-row.ts';
import { listRowModels, listOfferedNames } from '../../config/rows/key-row.ts';
import { textOf } from '../../config/rows/read-row.ts';
import { joinNames } from '../../config/rows/read-table.ts';
import { keyHash, keyHint } from '../../wire/ids.ts';
import { hourMs, isoTime } from '../../wire/iso-time.ts';
import type { OperatorPorts, RawRow, RowWrite } from '../operator-ports.ts';
import { normalizeMoments } from '../moment.ts';
import { Failure, formatInteger, usageFailure, type Plan } from '../plan.ts';
import { compileRows } from '../config/row-changes.ts';
import {
  carryOutWrites,
  findAccount,
  refuseChanged,
  refuseNaming,
  updateOf,
  setAttributes,
} from '../rows.ts';
import { findKey, judgeKey, listKeys, type FoundKey, type KeyView } from './list-keys.ts';

interface NewKeyInput {
  account: string;
  /** As the row has them. */
  attributes?: RawRow;
}

/** The note that identifies a key in sheets. The successors of a rotated key keep it. */
export const sheetIdNote = '_sheet_id';

/** `carryOutKey` adds hash and hint to the key's row. */
export interface NewKeyPlan extends Plan<RowWrite> {
  account: string;
  rights: string;
}

export type MadeKey = Omit<Awaited<ReturnType<typeof carryOutKey>>, 'made'>;

/** Makes the account, too, if it does not exist. */
export async function planCreateKey(
  ports: OperatorPorts,
  { account, attributes = {} }: NewKeyInput,
): Promise<NewKeyPlan> {
  // Its hash and hint are those of the key that is made.
  refuseNaming(attributes, { account, hash: undefined, hint: undefined });
  const nowMs = ports.clock.now();
  const row: RawRow = setAttributes(
    { account, enabled: true },
    { ...normalizeMoments(attributes, nowMs), _created: isoTime(nowMs) },
  );
  const { state, why: rights } = judgeKey({ ...row, hash: keyHash('of the key to be made') }, nowMs);
  if (state === 'invalid') throw usageFailure(`nothing was written: ${rights}`);
  if (state !== 'usable') throw usageFailure(`this key would not work: ${rights}`);
  const found = await findAccount(ports, account, true);
  const off = `customer ${account} is disabled: the key is rejected until you run \`customer on ${account}\``;
  const called = listRowModels(row);
  return {
    // Without a conflict: nobody else can have made a row of this key's hash. The reply to an earlier try was lost.
    changes: [...found.changes, { kind: 'create', table: 'keys', row }],
    effect: [...found.effect, `Create a key for ${account} (${rights})`],
    questions: [],
    warnings: [
      ...(isAccountOff(found.row) ? [off] : []),
      ...(await findUnservedModels(ports, called.length > 0 ? called : undefined)),
    ],
    account,
    rights,
  };
}

/** Generates a key, puts its hash and hint into the row that the plan makes, and writes. */
export async function carryOutKey(ports: OperatorPorts, plan: Plan<RowWrite>) {
  const secretKey = ports.random.secretKey();
  const [hash, hint] = [keyHash(secretKey), keyHint(secretKey)];
  const changes = plan.changes.map((write) =>
    write.table === 'keys' && write.kind === 'create'
      ? { ...write, row: { ...write.row, hash, hint } }
      : write,
  );
  return { secretKey, hash, hint, made: await carryOutWrites(ports, { ...plan, changes }) };
}

/** The row of a key's successor, before it has a hash and a hint. It is the operator's, whoever made the old one. */
export function successorOf({ row, hash }: FoundKey, keys: readonly KeyView[], nowMs: number): RawRow {
  const kept = Object.entries(row).filter(
    ([name]) => name === sheetIdNote || (!name.startsWith('_') && name !== 'made_by'),
  );
  const notes = { _created: isoTime(nowMs), _replaces: hash };
  const attributes = { enabled: true, expires_at: findOriginalExpiry(row, keys), ...notes };
  return setAttributes(Object.fromEntries(kept), attributes);
}

/** A rotation sets the old key's expiry to the end of its grace. Only the successor still has the original expiry. */
function findOriginalExpiry(row: RawRow, keys: readonly KeyView[]): unknown {
  const successor = keys.find((each) => each.row['_replaces'] === row['hash']);
  if (!successor) return row['expires_at'];
  // Rows that replace each other would never end the search.
  const others = keys.filter((each) => each !== successor);
  return findOriginalExpiry(successor.row, others);
}

/**
 * Warns of models that nobody serves: a typing mistake, or a model that comes later.
 * @param models undefined: every model
 */
async function findUnservedModels(
  ports: OperatorPorts,
  models: readonly string[] | undefined,
): Promise<string[]> {
  if (models === undefined) return [];
  const offered = listOfferedNames(compileRows(ports, await ports.config.tables()).snapshot);
  const unserved = models.filter((name) => !offered.has(name));
  return unserved.length === 0 ? [] : [`no enabled channel serves ${joinNames(unserved)}`];
}

const graceHoursMax = 24 * 366;

interface RotateKeyPlan extends NewKeyPlan {
  oldName: string;
  oldHint: string;
  oldWorksUntil: string;
}

/**
 * Plans a key with the attributes of an old one and an end of the old one, both in one transaction.
 * @param written the old key, in a form that `findKey` accepts
 */
export async function planRotateKey(
  ports: OperatorPorts,
  { written, graceHours }: { written: string; graceHours: number },
): Promise<RotateKeyPlan> {
  if (!(graceHours >= 0 && graceHours <= graceHoursMax))
    throw usageFailure(`--grace: enter hours from 0 to ${formatInteger(graceHoursMax)}`);
  const old = await findKey(ports, written);
  const nowMs = ports.clock.now();
  const { state, why: problem, row: read } = judgeKey(old.row, nowMs);
  if (read === undefined || state !== 'usable')
    throw new Failure(`${old.name} does not work (${problem}), so a copy would not work either`);
  const keys = await listKeys(ports, { account: read.account });
  const earlier = keys.filter((each) => each.row['_replaces'] === old.hash && each.state === 'usable');
  const successor = successorOf(old, keys, nowMs);
  const { state: nextState, why } = judgeKey(successor, nowMs);
  if (nextState !== 'usable') throw new Failure(`a copy of ${old.name} would not work: ${why}`);
  const end = isoTime(Math.min(nowMs + graceHours * hourMs, read.expires_at ?? Infinity));
  return {
    changes: [
      { kind: 'create', table: 'keys', row: successor },
      {
        kind: 'update',
        table: 'keys',
        key: { hash: old.hash },
        attributes: { expires_at: end },
        // If the old key is disabled or rotated in the meantime, no new key must be created.
        unchanged: { enabled: old.row['enabled'], expires_at: old.row['expires_at'] },
      },
    ],
    effect: [`Create a key for ${read.account} (${why})`, `Let ${old.name} expire at ${end}`],
    questions: [graceHours === 0 ? `Replace ${old.name} and disable it now?` : `Replace ${old.name}?`],
    warnings: earlier.map(
      ({ row }) =>
        `this key was already replaced by ${textOf(row, 'hint')}; if that key is lost: key off ${textOf(row, 'hash').slice(0, 12)}`,
    ),
    together: true,
    account: read.account,
    rights: why,
    oldName: old.name,
    oldHint: old.hint,
    oldWorksUntil: end,
  };
}

/** Composes the message for the customer. It contains the new key. */
export const writeRotationMessage = (
  { oldHint, oldWorksUntil }: RotateKeyPlan,
  secretKey: string,
): string[] => [
  `Your new API key: ${secretKey}`,
  `It has the same rights as ${oldHint}, which works until ${oldWorksUntil.slice(0, 16).replace('T', ' ')} UTC. Please replace the old key before then.`,
];

/** `rights`: what it may do afterwards, in words. */
export type EditKeyPlan = Awaited<ReturnType<typeof planEditKey>>;

/**
 * An undefined attribute is removed; others stay. Another `account` has to exist; what the key called before stays with the former one.
 * @param seen `fingerprintRow` of the row as it was looked at. Absent: it is not compared
 */
export async function planEditKey(ports: OperatorPorts, written: string, typed: RawRow, seen?: string) {
  const key = await findKey(ports, written);
  const { hash, name, row } = key;
  refuseNaming(typed, { hash });
  refuseChanged(name, row, seen);
  const nowMs = ports.clock.now();
  const attributes = normalizeMoments(typed, nowMs);
  const isEnabled = Object.hasOwn(attributes, 'enabled') && attributes['enabled'] !== false;
  if (isEnabled && row['enabled'] === false && row['_leaked'] !== undefined)
    throw usageFailure(`${name} was disabled because it leaked: create another with \`key new\``);
  const account = textOf(attributes, 'account');
  const isMoved = account !== '' && account !== key.account;
  if (isMoved) await findAccount(ports, account);
  const changes = updateOf({ table: 'keys', key: { hash }, row }, attributes);
  const { state, why: rights } = judgeKey(setAttributes(row, attributes), nowMs);
  if (state === 'invalid') throw usageFailure(`nothing was written: ${rights}`);
  return {
    changes,
    effect: [
      changes.length === 0
        ? `Nothing to change: ${name} is already like this`
        : `Update ${name} (live within 30 s): ${rights}${state === 'usable' ? '' : ` (${state})`}`,
      ...(isMoved ? [`Charge calls of ${name} to ${account}; earlier calls stay with ${key.account}`] : []),
    ],
    questions: isMoved ? [`Move ${name} to ${account}?`] : [],
    warnings: await findUnservedModels(
      ports,
      attributes['models'] === undefined ? undefined : listRowModels(attributes),
    ),
    name,
    rights,
    state,
  };
}

/** Lets a disabled key work again. Refuses one that would not work all the same. */
export async function planEnableKey(ports: OperatorPorts, written: string): Promise<EditKeyPlan> {
  const plan = await planEditKey(ports, written, { enabled: true });
  if (plan.state !== 'usable') throw new Failure(`${plan.name} would not work: ${plan.rights}`);
  return plan;
}

/**
 * Disables the key whatever its row says by then: a leaked key that stays enabled is worse than an overwritten
 * edit.
 */
export const disableKeyWrite = (hash: string): RowWrite => ({
  kind: 'update',
  table: 'keys',
  key: { hash },
  attributes: { enabled: false },
  unchanged: {},
});

/** The relay refuses the key, and its row stays. */
export async function planDisableKey(ports: OperatorPorts, written: string) {
  const { hash, name, account } = await findKey(ports, written);
  const conflict = new Failure('someone deleted this key, so it is already rejected');
  return {
    changes: [{ ...disableKeyWrite(hash), conflict }],
    effect: [`Disable ${name} within 30 s`],
    questions: [`Disable ${name}?`],
    warnings: await warnOfMadeKeys(ports, { hash, account }),
    name,
  };
}

/** A warning where a key has made others that work: what is done to it does nothing to them. */
export async function warnOfMadeKeys(
  ports: OperatorPorts,
  { hash, account }: Pick<FoundKey, 'hash' | 'account'>,
): Promise<string[]> {
  const keys = await listKeys(ports, { account });
  const made = keys.filter(({ row, state }) => row['made_by'] === hash && state === 'usable');
  const names = made.map(({ row }) => `${textOf(row, 'hint')} (hash ${textOf(row, 'hash').slice(0, 12)})`);
  return made.length === 0
    ? []
    : [`this key created other keys, which keep working until you disable each: ${names.join(', ')}`];
}
