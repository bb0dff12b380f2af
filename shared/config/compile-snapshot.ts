/**
 * Compiles the rows of channels, charges, plans and settings into the snapshot, and finds who changed what between two versions. The
 * function `config` and the operators' tools use it. Pure, so the tools predict exactly what the stack will do.
 */
import { compareCodeUnits, canonicalJson } from '../wire/json.ts';
import {
  selectUsableAliases,
  findCrossWarnings,
  formatRowName,
  addWarnings,
  findNamedModels,
  listUnpricedModels,
} from './cross-checks.ts';
import {
  emptyRows,
  type ConfigRows,
  joinNames,
  readTable,
  type RowResult,
  keyAttributes,
  type ConfigTable,
} from './rows/read-table.ts';
import { findPriceJumps } from './price-warnings.ts';
import type { LearnedFact } from '../upstreams/quirks.ts';
import { createChannelReader } from './rows/channel-row.ts';
import { readCharge } from './rows/charge-row.ts';
import { readPlan } from './rows/plan-row.ts';
import { readSetting, findReferenceOwners, createSettingReader } from './setting-rows.ts';
import type { ReferenceRules } from './rows/secret-reference.ts';
import { defaultSettings, type Settings } from './settings.ts';
import { type Snapshot, snapshotFormat } from './snapshot.ts';
import { attributeOf, plainRow } from './rows/read-row.ts';

export interface CompileOptions extends ReferenceRules {
  /** The relay's public host, to which no channel may lead. */
  ownHost?: string | undefined;
  /** The deployment's value of the setting `limits`, used while it has no row. */
  defaultLimits?: unknown;
  /** Unix seconds. */
  publishedAt: number;
  /** The rows of the newest snapshot: the last valid versions of invalid rows. */
  earlier?: ConfigRows;
  /** The rows of charges to compare prices with, if not those of `earlier`. */
  pricesBefore?: readonly unknown[];
  /** Secret references that could not be read, each with the reason. */
  unreadableSecrets?: ReadonlyMap<string, string>;
  /** Quirks that answers taught about channels. */
  learned?: readonly LearnedFact[];
}

export interface Compiled {
  snapshot: Snapshot;
  /** The rows from which the snapshot was compiled, as JSON, sorted by key, including disabled channels. */
  rows: ConfigRows;
  /** One for each input row, in the same order. */
  results: RowResult[];
}

const chargeReader = { table: 'charges', read: readCharge } as const;

/** Never throws: an invalid row gets a problem, and its last valid version is used. */
export function compileSnapshot(raw: ConfigRows, options: CompileOptions): Compiled {
  const earlier = options.earlier ?? emptyRows;
  const owners = findReferenceOwners([...earlier.settings, ...raw.settings], options.owners);
  const rules = { ...options, owners };
  const channels = readTable(createChannelReader(rules), raw.channels, earlier.channels);
  const charges = readTable(chargeReader, raw.charges, earlier.charges);
  const plans = readTable({ table: 'plans', read: readPlan }, raw.plans, earlier.plans);
  const settings = readTable(createSettingReader(rules), raw.settings, earlier.settings);

  const enabled = channels.rows
    .filter((channel) => channel.state)
    .toSorted((a, b) => b.priority - a.priority || compareCodeUnits(a.id, b.id));
  const written: Settings = Object.assign(
    structuredClone(defaultSettings),
    readDeploymentSettings(options),
    ...settings.rows,
  );
  const { aliases } = written;
  const draining = channels.rows.filter(
    ({ state, params }) => !state && params.completion_windows === 'submit',
  );
  const snapshot: Snapshot = {
    publishedAt: options.publishedAt,
    channels: enabled,
    ...(draining.length > 0 && { drainingChannels: draining }),
    charges: charges.rows,
    plans: plans.rows,
    settings: { ...written, aliases: selectUsableAliases(aliases, channels.rows) },
    models: [...new Set(enabled.flatMap((channel) => channel.models))],
  };
  const unread = raw.charges.filter((_, at) => charges.results[at]?.problem !== undefined);
  const unreadPrices = findNamedModels(unread, listUnpricedModels(snapshot));
  if (unreadPrices.length > 0) snapshot.unreadPrices = unreadPrices;
  charges.results = charges.results.map((result, at) =>
    result.problem === undefined
      ? result
      : addRefusedModels(result, findNamedModels([raw.charges[at]], unreadPrices)),
  );
  const tables = [channels, charges, plans, settings];
  const { unreadableSecrets = new Map(), learned = [] } = options;
  const warnings = findCrossWarnings(snapshot, {
    unreadableSecrets,
    learned,
    aliases,
    channels: channels.rows,
  });
  const jumps = findPriceJumps({
    charges: charges.rows,
    before: readTable(chargeReader, [...(options.pricesBefore ?? earlier.charges)], []).rows,
    raw: raw.charges,
    nowMs: options.publishedAt * 1000,
  });
  for (const [id, found] of jumps) warnings.get(formatRowName('charges', id))?.push(...found);
  return {
    snapshot,
    rows: {
      channels: channels.plainRows,
      charges: charges.plainRows,
      plans: plans.plainRows,
      settings: settings.plainRows,
    },
    results: addWarnings(
      tables.flatMap(({ results }) => results),
      warnings,
    ),
  };
}

const addRefusedModels = (result: RowResult, models: string[]): RowResult =>
  models.length === 0
    ? result
    : { ...result, problem: `${result.problem}; until then calls of ${joinNames(models)} are refused` };

/** The deployment checked the value, so an invalid one is ignored. */
function readDeploymentSettings({ defaultLimits }: CompileOptions): Partial<Settings> {
  if (defaultLimits === undefined) return {};
  const reading = readSetting({ name: 'limits', value: defaultLimits });
  return 'row' in reading ? reading.row : {};
}

/** Equal configurations give equal texts, whenever they were compiled and in whatever order the store returned the rows. */
export const serializeConfiguration = (snapshot: Snapshot, rows: ConfigRows): string =>
  canonicalJson({ format: snapshotFormat, snapshot: { ...snapshot, publishedAt: 0 }, rows });

// Authors of a version, by the attributes `_by` and `_at` of the rows that changed

interface EditedRows {
  raw: ConfigRows;
  /** The version before, if there is one. */
  before: ConfigRows | undefined;
  after: ConfigRows;
}

/**
 * Other tools leave the author of an earlier edit in a row, so authors from before the last version do not count. Clocks may differ by
 * so much.
 */
const skewSeconds = 60;

/** @param sinceSeconds the publication of the version before */
export function listAuthors({ raw, before, after }: EditedRows, sinceSeconds: number): string[] {
  const authors = (Object.keys(keyAttributes) as ConfigTable[]).flatMap((table) => {
    const name = keyAttributes[table];
    const earlier = new Set(before?.[table].map((row) => canonicalJson(plainRow(row))));
    const changed = after[table].filter((row) => !earlier.has(canonicalJson(plainRow(row))));
    const keys = new Set(changed.map((row) => attributeOf(row, name)));
    return raw[table]
      .filter((row) => keys.has(attributeOf(row, name)))
      .flatMap((row) => findAuthor(row, sinceSeconds));
  });
  return [...new Set(authors)].toSorted(compareCodeUnits);
}

const changesMax = 5;
const charactersMax = 200;

/** Names a few changed rows, such as `channel a: weight`, without values, because one may be a secret. */
export function listChanges({ before, after }: Pick<EditedRows, 'before' | 'after'>): string[] {
  if (before === undefined) return [];
  const lines = (Object.keys(keyAttributes) as ConfigTable[]).flatMap((table) => {
    const groupByKey = (rows: unknown[]) =>
      new Map(rows.map((row) => [attributeOf(row, keyAttributes[table]), plainRow(row) as object]));
    const [old, next] = [groupByKey(before[table]), groupByKey(after[table])];
    return [...new Set([...old.keys(), ...next.keys()])].flatMap((key) => {
      const words = describeRowChange(old.get(key), next.get(key));
      return words === undefined
        ? []
        : [`${table.slice(0, -1)} ${String(key)}${words}`.slice(0, charactersMax)];
    });
  });
  const more = lines.length - changesMax;
  return more > 0 ? [...lines.slice(0, changesMax), `${more} more`] : lines;
}

function describeRowChange(before: object | undefined, after: object | undefined): string | undefined {
  if (before === undefined || after === undefined) return before === undefined ? ' is new' : ' is deleted';
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (name) => canonicalJson(attributeOf(before, name)) !== canonicalJson(attributeOf(after, name)),
  );
  if (names.length === 0) return undefined;
  return `: ${joinNames(names.toSorted(compareCodeUnits))}`;
}

function findAuthor(row: unknown, sinceSeconds: number): string[] {
  const [by, at] = [attributeOf(row, '_by'), attributeOf(row, '_at')];
  if (typeof by !== 'string' || typeof at !== 'string') return [];
  return Date.parse(at) / 1000 >= sinceSeconds - skewSeconds ? [by] : [];
}
