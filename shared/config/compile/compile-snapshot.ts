import { compareCodeUnits } from '../../wire/canonical-json.ts';
import { usedAliases } from './alias-checks.ts';
import { emptyRows, type ConfigRows } from '../config-rows.ts';
import { crossWarnings, nameOf, withWarnings } from './cross-checks.ts';
import { namesShown } from '../marks/names-shown.ts';
import { priceJumps } from '../marks/price-jumps.ts';
import type { LearnedFact } from '../learned-fact.ts';
import { channelReader } from './read-channel.ts';
import { readCharge } from './read-charge.ts';
import { readPlan } from './read-plan.ts';
import { readSetting, settingReader } from './read-setting.ts';
import { readTable } from './read-table.ts';
import type { ReferenceRules } from '../rows/secret-reference.ts';
import { storedChannel } from './stored-channel.ts';
import { modelsNamedIn, unpricedModels } from './unpriced-models.ts';
import { defaultSettings, type Settings } from '../settings/settings.ts';
import type { Snapshot } from '../snapshot.ts';
import type { RowResult } from '../validation-result.ts';

export interface CompileOptions extends ReferenceRules {
  /** The relay's public host, to which no channel may lead. Absent: it is not known. */
  ownHost?: string | undefined;
  /** The value of the setting `limits` while it has no row, from the deployment. Absent: as in `defaultSettings`. */
  defaultLimits?: unknown;
  /** Unix seconds. */
  publishedAt: number;
  /** The rows of the newest snapshot, which are the last good versions of bad rows. */
  earlier?: ConfigRows;
  /** The rows of charges with which prices are compared. Absent: those of `earlier`. */
  pricesBefore?: readonly unknown[];
  /** Secret references that could not be read, each with the reason. */
  unreadableSecrets?: ReadonlyMap<string, string>;
  /** What answers taught about channels. */
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

/**
 * Compiles the rows of the ops-edited tables into the snapshot that requests are served with, and a validation result
 * for each row. Never throws: a bad row gets a problem, and its last good version is used.
 */
export function compileSnapshot(raw: ConfigRows, options: CompileOptions): Compiled {
  const earlier = options.earlier ?? emptyRows;
  const channels = readTable(channelReader(options), raw.channels, earlier.channels);
  const charges = readTable(chargeReader, raw.charges, earlier.charges);
  const plans = readTable({ table: 'plans', read: readPlan }, raw.plans, earlier.plans);
  const settings = readTable(settingReader(options), raw.settings, earlier.settings);

  const enabled = channels.rows
    .filter((channel) => channel.state)
    .toSorted((a, b) => b.priority - a.priority || compareCodeUnits(a.id, b.id));
  const written: Settings = Object.assign(
    structuredClone(defaultSettings),
    deploymentSettings(options),
    ...settings.rows,
  );
  const { aliases } = written;
  const snapshot: Snapshot = {
    publishedAt: options.publishedAt,
    channels: enabled.map(storedChannel),
    charges: charges.rows,
    plans: plans.rows,
    settings: aliases ? { ...written, aliases: usedAliases(aliases, channels.rows) } : written,
    models: [...new Set(enabled.flatMap((channel) => channel.models))],
  };
  const unread = raw.charges.filter((_, at) => charges.results[at]?.problem !== undefined);
  const unreadPrices = modelsNamedIn(unread, unpricedModels(snapshot));
  if (unreadPrices.length > 0) snapshot.unreadPrices = unreadPrices;
  charges.results = charges.results.map((result, at) =>
    result.problem === undefined
      ? result
      : sayingRefused(result, modelsNamedIn([raw.charges[at]], unreadPrices)),
  );
  const tables = [channels, charges, plans, settings];
  const { unreadableSecrets = new Map(), learned = [] } = options;
  const warnings = crossWarnings(snapshot, { unreadableSecrets, learned, aliases, channels: channels.rows });
  const jumps = priceJumps({
    charges: charges.rows,
    before: readTable(chargeReader, [...(options.pricesBefore ?? earlier.charges)], []).rows,
    raw: raw.charges,
    nowMs: options.publishedAt * 1000,
  });
  for (const [id, found] of jumps) warnings.get(nameOf('charges', id))?.push(...found);
  return {
    snapshot,
    rows: {
      channels: channels.plainRows,
      charges: charges.plainRows,
      plans: plans.plainRows,
      settings: settings.plainRows,
    },
    results: withWarnings(
      tables.flatMap(({ results }) => results),
      warnings,
    ),
  };
}

const sayingRefused = (result: RowResult, models: string[]): RowResult =>
  models.length === 0
    ? result
    : { ...result, problem: `${result.problem}; until then calls of ${namesShown(models)} are refused` };

/** Settings of the deployment. Their form was checked when the stack was made; one that is wrong is not used. */
function deploymentSettings({ defaultLimits }: CompileOptions): Partial<Settings> {
  if (defaultLimits === undefined) return {};
  const reading = readSetting({ name: 'limits', value: defaultLimits });
  return 'row' in reading ? reading.row : {};
}
