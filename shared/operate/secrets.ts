/**
 * Stores secrets under paths that name their purpose, and moves those that were stored before paths named one. A plan never contains
 * the value of a secret, so it can be shown.
 */
import { attributeOf, plainRow, plainValue } from '../config/rows/read-row.ts';
import { emptyRows, keyAttributes, type ConfigRows } from '../config/rows/read-table.ts';
import {
  isOfStack,
  isSecretName,
  isStorablePath,
  isUnbound,
  formatManagedSecretName,
  findStackProblem,
  formatParameterName,
  findReferenceProblem,
  buildSecretPath,
  type NamedSecret,
} from '../config/rows/secret-reference.ts';
import { findReferenceOwners, findReferences } from '../config/setting-rows.ts';
import { listSecrets } from './config/row-changes.ts';
import { awaitPublished } from './config/write-rows.ts';
import type { OperatorPorts, RawRow, RowWrite } from './operator-ports.ts';
import { deniedExitCode, Failure, usageFailure } from './plan.ts';
import { listTexts } from '../wire/json.ts';

interface SecretInput {
  /** `channels/<host>/<name>` and the like. */
  name: string;
  managed: boolean;
  replace: boolean;
  /** The key of a channel that is being set up: the path ends in the channel's id. */
  isOfNewChannel?: boolean;
}

export type StoreSecretPlan = ReturnType<typeof planStoreSecret>;

/** Throws a Failure if the target has no secret store or the name is invalid. */
export function planStoreSecret(
  { target }: Pick<OperatorPorts, 'target'>,
  { name, managed, replace, isOfNewChannel }: SecretInput,
) {
  if (target.local) throw usageFailure(noStore);
  if (!isSecretName(name)) throw usageFailure('invalid name: use A-Z a-z 0-9 . _ - and / as separator');
  // `secret set` still replaces values whose paths name no purpose.
  if (!replace && !isStorablePath(name)) throw usageFailure(explainPurpose(name));
  const { stack } = target;
  const stored = managed ? formatManagedSecretName(stack, name) : formatParameterName(stack, name);
  const reference = `${managed ? 'secretsmanager' : 'ssm'}:${stored}`;
  const conflict = usageFailure(
    isOfNewChannel
      ? `${reference} already has a secret: re-run with --secret ${reference}, or choose another --id`
      : `the secret ${stored} already exists: choose another name, or replace it with \`secret set\``,
  );
  const effect = replace
    ? `Replace ${reference} (used within 5 minutes, or at once if the upstream rejects the old one)`
    : `Store the secret as ${reference}; use this reference in rows, for example with \`channel set ID secret=...\``;
  return { changes: [{ reference, replace, conflict }], effect: [effect], questions: [], reference };
}

const noStore =
  'a local stack has no secret store: set OPENAI_API_KEY before `npm start` and use env:OPENAI_API_KEY in rows. ' +
  'To use another variable, list its name in RELAY_ENV_SECRETS before `npm start`';

function explainPurpose(path: string): string {
  const name = path.slice(path.lastIndexOf('/') + 1);
  return (
    `the path must name a purpose: channels/<host>/${name} for channels that call that host (such as ` +
    `channels/api.vendor.com/${name}), search/<host>/${name}, payments/${name} (payments/api.stripe.com/${name} for ` +
    `Stripe's API key), alerts/${name}, console/${name} or canary/${name}. Write the host in lower case, as in the endpoint`
  );
}

/** Throws a Failure if a value exists and the plan does not replace it. */
export async function carryOutStoreSecret(
  { secrets }: OperatorPorts,
  { changes, reference }: StoreSecretPlan,
  value: string,
): Promise<string> {
  checkValue(value);
  for (const write of changes) await secrets.put(write, value);
  return reference;
}

/** Size limit of SSM's standard parameters, which are free of charge. */
const valueCharactersMax = 4096;

function checkValue(value: string): void {
  if (value === '') throw usageFailure('no value on standard input');
  // A header can carry only these characters; others are most likely a pasting mistake.
  if (!/^[\x21-\x7e]+$/.test(value))
    throw usageFailure('invalid value: it has spaces or characters that a key never has');
  if (value.length > valueCharactersMax)
    throw usageFailure(`the value is longer than ${valueCharactersMax} characters`);
}

// Moving a secret: copy the value to its new path, write the new reference into the row, then remove the old secret. The row lists the old
// references in `_moved` until they are removed, so a move that was interrupted can be repeated.

/** One row of a move. `write` is undefined if an earlier run already changed the row and only old secrets are left to remove. */
interface RowMove {
  moves: { named: NamedSecret; to: string }[];
  write: RowWrite | undefined;
}

type MoveSecretsPlan = Awaited<ReturnType<typeof planMoveSecrets>>;

/** Leaves rows alone that name another purpose's secret: copying it would hand it to them. `warnings` name these rows. */
export async function planMoveSecrets(ports: OperatorPorts) {
  const { config, target } = ports;
  if (target.local) throw usageFailure(noStore);
  const rows = await config.tables();
  const rules = { ...target, owners: findReferenceOwners(rows.settings, target.owners) };
  const refused: string[] = [];
  const changes = (['channels', 'settings'] as const).flatMap((table) =>
    rows[table].flatMap((raw): RowMove[] => {
      const old = listSecrets({ ...emptyRows, [table]: [raw] }).filter(
        (named) => isUnbound(named) && isOfStack(named.reference, target.stack),
      );
      const problem =
        findStackProblem(raw, rules) ?? old.map((named) => findReferenceProblem(named, rules)).find(Boolean);
      if (problem !== undefined && old[0])
        refused.push(`${table} ${old[0].row} is left unchanged: ${problem}`);
      const moves = old.map((named) => ({ named, to: renameReference(named, target.stack) }));
      if (problem !== undefined || moves.length === 0)
        return oldOf(raw).length > 0 ? [{ moves: [], write: undefined }] : [];
      return [{ moves, write: writeOf(table, raw, moves) }];
    }),
  );
  return {
    changes,
    effect: listTexts(
      ...changes.flatMap(({ moves }) =>
        moves.map(
          ({ named: { row, at, reference }, to }) => `Change ${row} ${at} from ${reference} to ${to}`,
        ),
      ),
      ...findRowsToMove(rows).flatMap(({ old }) =>
        old.map((each) => `Delete ${each}, which an earlier run moved`),
      ),
      changes.length === 0 &&
        'Nothing to move: all paths name a purpose. Set the option unboundSecrets to false, so that functions can read no other secrets.',
    ),
    questions: changes.length > 0 ? ['Copy these secrets, update the rows and delete the old secrets?'] : [],
    warnings: refused,
  };
}

function renameReference({ reference, ...use }: NamedSecret, stack: string): string {
  const [prefix = ''] = /^(ssm:\/relay\/|secretsmanager:)/.exec(reference) ?? [];
  const name = reference.slice(prefix.length + stack.length + 1);
  const own = `${use.purpose}/`;
  return `${prefix}${stack}/${buildSecretPath(use, name.startsWith(own) ? name.slice(own.length) : name)}`;
}

function writeOf(table: 'channels' | 'settings', raw: unknown, moves: RowMove['moves']): RowWrite {
  const row = raw as RawRow;
  const renamed = new Map(moves.map(({ named, to }) => [named.reference, to]));
  const [keyName, name] = [keyAttributes[table], table === 'channels' ? 'secret' : 'value'];
  const old = [...new Set([...oldOf(raw), ...renamed.keys()])];
  return {
    kind: 'update',
    table,
    key: { [keyName]: row[keyName] },
    attributes: { [name]: replaceReferences(row[name], renamed), [oldAttribute]: old },
    unchanged: Object.fromEntries([name, 'endpoint', 'type', oldAttribute].map((each) => [each, row[each]])),
    conflict: new Failure(`${table} ${String(row[keyName])} changed in the meantime: re-run the command`),
  };
}

/** A reviver reaches every text of a value at any depth. */
const replaceReferences = (value: unknown, renamed: ReadonlyMap<string, string>): unknown =>
  JSON.parse(JSON.stringify(plainValue(value)), (_name, each: unknown) =>
    typeof each === 'string' ? (renamed.get(each.trim()) ?? each) : each,
  );

const oldAttribute = '_moved';
const oldOf = (raw: unknown): string[] =>
  [attributeOf(raw, oldAttribute) ?? []].flat().filter((each) => typeof each === 'string');

const findRowsToMove = (rows: ConfigRows) =>
  (['channels', 'settings'] as const)
    .flatMap((table) => rows[table].map((raw) => ({ table, raw: raw as RawRow, old: oldOf(raw) })))
    .filter(({ old }) => old.length > 0);

/** Running calls may still use the previous configuration, which names the old secrets. */
const graceMs = 20_000;

/**
 * Moves all rows that it can, then throws a Failure that lists the others.
 * @param waitSeconds how long to wait until the rows are published. 0 does not wait, so calls may fail unless the relay is closed
 */
export async function carryOutMove(ports: OperatorPorts, { changes }: MoveSecretsPlan, waitSeconds: number) {
  const { clock, config, secrets, tables } = ports;
  const failed: string[] = [];
  for (const { moves, write } of changes)
    try {
      for (const move of moves) await copySecret(ports, move);
      if (write && !(await tables.write(write)) && write.conflict) throw write.conflict;
    } catch (error) {
      if (!(error instanceof Failure) || error.exitCode === deniedExitCode) throw error;
      failed.push(error.message);
    }
  const removed: string[] = [];
  const kept: string[] = [];
  if (findRowsToMove(await config.tables()).length > 0) {
    const version = await awaitPublished(ports, waitSeconds);
    if (waitSeconds > 0) await clock.sleep(graceMs);
    const rows = await config.tables();
    // An invalid row is served as its last valid version, which may name other secrets than the row.
    const served = version ? await config.rows(version) : emptyRows;
    const namingRows = [rows.channels, rows.settings, served.channels, served.settings].flat();
    const named = new Set(namingRows.flatMap((raw) => findReferences(plainRow(raw))));
    for (const { table, raw, old } of findRowsToMove(rows)) {
      const still = old.filter((reference) => named.has(reference));
      for (const reference of old.filter((each) => !named.has(each))) {
        await secrets.remove(reference);
        removed.push(reference);
      }
      kept.push(...still);
      await tables.write({
        kind: 'update',
        table,
        key: { [keyAttributes[table]]: raw[keyAttributes[table]] },
        attributes: { [oldAttribute]: still.length > 0 ? still : undefined },
        unchanged: { [oldAttribute]: raw[oldAttribute] },
      });
    }
  }
  if (failed.length > 0) throw new Failure(`${failed.join('; ')}. Fix this and re-run the command`);
  return {
    moved: changes.filter(({ write }) => write).length,
    removed: [...new Set(removed)],
    kept: [...new Set(kept)],
  };
}

/** Accepts a copy that an interrupted move left. Never overwrites a different value, which may be newer. */
async function copySecret(
  { secrets }: OperatorPorts,
  { named, to }: RowMove['moves'][number],
): Promise<void> {
  const value = await secrets.read(named.reference, named);
  const conflict = new Failure(
    `${to} already has a different value than ${named.reference}: if it is right, set ${to} in ${named.row} yourself`,
  );
  try {
    await secrets.put({ reference: to, replace: false, conflict }, value);
  } catch (error) {
    if (error !== conflict || (await secrets.read(to, named)) !== value) throw error;
  }
}
