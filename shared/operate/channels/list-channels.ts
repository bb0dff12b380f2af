/**
 * Views of channels: found by id, listed in the order in which the relay tries them, with what they did in some days and what
 * is known against them now. Reads sums, never the ledger. Shows no value of a row with a problem, except its id.
 */
import type { DailyFigures } from '../../billing/daily-figures.ts';
import { readChannel, secretsOf, type ChannelRow } from '../../config/rows/channel-row.ts';
import { markOfVariable } from '../../config/rows/secret-reference.ts';
import { candidatesOf } from '../../relay/call/serving-channels.ts';
import { healthKeysOf } from '../../relay/health/health-recorder.ts';
import { forgottenAtMs, type HealthEntry, type RestKind } from '../../relay/ports/runtime-stores.ts';
import { channelTypes } from '../../upstreams/types/channel-types.ts';
import { utcDay } from '../../wire/iso-time.ts';
import { compareCodeUnits } from '../../wire/json.ts';
import { rowsIn, sumOfFigures } from '../ledger/ledger.ts';
import type { OperatorPorts, RawRow, ServedDay } from '../operator-ports.ts';
import { Failure, usageFailure } from '../plan.ts';

/** Throws a Failure if there is no such channel, or if the relay would not use its row. */
export async function findChannel({ tables, target }: OperatorPorts, id: string) {
  const raw = await tables.get('channels', id);
  if (raw === undefined) throw usageFailure(`there is no channel ${id}: see \`channel list\``);
  const reading = readChannel(raw, target);
  if ('problem' in reading) throw new Failure(`channel ${id} is not used: ${reading.problem}`);
  return { raw, channel: reading.row, warnings: reading.warning === undefined ? [] : [reading.warning] };
}

/** The rows that the relay uses as they are. */
export const usableChannels = (rows: readonly unknown[], rules: { local: boolean }): ChannelRow[] =>
  rows.flatMap((raw) => {
    const reading = readChannel(raw, rules);
    return 'problem' in reading ? [] : [reading.row];
  });

/** A public name that the channel serves: the wanted one, else its first. Throws a Failure if there is none. */
export function servedModel({ id, models }: ChannelRow, wanted: string | undefined): string {
  const model = wanted ?? models[0];
  if (model !== undefined && models.includes(model)) return model;
  throw usageFailure(`channel ${id} serves ${models.join(', ') || 'no model'}: choose one with --model`);
}

/** Throws a Failure for a channel whose requests only the functions can sign. */
export function refuseRoleSigned({ type }: ChannelRow): void {
  if (channelTypes[type].awsScope)
    throw new Failure(
      `channels of the type ${type} are called with the functions' own role, which this tool does not have: call the relay`,
    );
}

/**
 * Reads the channel's first key; undefined: it has none. Throws a Failure if the key cannot be read.
 * @param secretEnv the environment variable that contains the key; overrides the row's reference
 */
export async function channelSecret(
  { secrets }: OperatorPorts,
  channel: ChannelRow,
  secretEnv: string | undefined,
): Promise<string | undefined> {
  if (secretEnv !== undefined) return secrets.variable(secretEnv);
  const [reference] = secretsOf(channel);
  return reference === undefined ? undefined : secrets.read(reference);
}

export interface ListedChannel {
  id: string;
  state: 'on' | 'off' | 'bad';
  priority?: number;
  weight?: number;
  models?: string[];
  endpoint?: string;
  secret?: string[];
  problem?: string;
  warning?: string;
}

/** Rows with a problem come last. */
export const listChannels = async ({ tables, target }: OperatorPorts): Promise<ListedChannel[]> =>
  listedChannels(await tables.scan('channels'), target);

const listedChannels = (rows: readonly unknown[], rules: { local: boolean }): ListedChannel[] =>
  rows
    .map((raw) => listed(raw as RawRow, rules))
    .toSorted(
      (a, b) =>
        // For two rows with a problem the difference is NaN, so they are sorted by id.
        (b.priority ?? -Infinity) - (a.priority ?? -Infinity) || compareCodeUnits(a.id, b.id),
    );

function listed(raw: RawRow, rules: { local: boolean }): ListedChannel {
  const id = String(raw['id']);
  const reading = readChannel(raw, rules);
  // A secret may have been typed into a wrong attribute, so none is shown.
  if ('problem' in reading) return { id, state: 'bad', problem: reading.problem };
  const problem = markOfVariable(raw, rules);
  if (problem !== undefined) return { id, state: 'bad', problem };
  const { row, warning } = reading;
  const { state, priority, weight, models, endpoint } = row;
  const shown = { priority, weight, models, endpoint, secret: secretsOf(row) };
  return { id, state: state ? 'on' : 'off', ...shown, ...(warning !== undefined && { warning }) };
}

/** Of the last days. A call counts for the channel that was tried last. */
export interface ChannelActivity {
  calls: number;
  failures: number;
  /** `2026-11-22`, in UTC. Undefined: none in these days. */
  lastCall: string | undefined;
  lastFailure: string | undefined;
  /** Calls of the last day that had some, if all of them failed; else 0. */
  failing: number;
}

/** `since`: the first of these days with a call of any channel. */
export type ActivityView = Awaited<ReturnType<typeof channelActivity>>;

const dayMs = 86_400_000;
const activityDays = 14;
/** A channel that is on and was not called for so long is idle, or for longer. */
const idleDays = 10;

/** When channels were last called and last failed. Of 300 models on two channels, 14 days are some 3 MB. */
export async function channelActivity({ clock, ledger }: OperatorPorts) {
  const days = { from: utcDay(clock.now() - activityDays * dayMs), to: utcDay(clock.now()) };
  const { rows, problems } = await rowsIn(ledger.served(days));
  // Sorted by day.
  return { days, since: rows[0]?.day, channels: activityOf(rows), served: rows, problems };
}

export const noActivity: ChannelActivity = {
  calls: 0,
  failures: 0,
  lastCall: undefined,
  lastFailure: undefined,
  failing: 0,
};

/** By id of the channel, of an id beyond 200 characters these. */
function activityOf(served: readonly ServedDay[]): Map<string, ChannelActivity> {
  const found = new Map<string, ChannelActivity>();
  for (const { day, channel, figures } of served) {
    const { calls = 0, failures = 0 } = figures.counts;
    if (channel === undefined || calls === 0) continue;
    // Rows are sorted by day, and a day has one for each model.
    const known = found.get(channel) ?? noActivity;
    const isSameDay = known.lastCall === day;
    const allFailed = failures === calls && (!isSameDay || known.failing > 0);
    found.set(channel, {
      failing: allFailed ? calls + (isSameDay ? known.failing : 0) : 0,
      calls: known.calls + calls,
      failures: known.failures + failures,
      lastCall: day,
      lastFailure: failures > 0 ? day : known.lastFailure,
    });
  }
  return found;
}

/** A channel that is on and whose last calls all failed. */
export const isFailing = ({ state }: { state: string }, { failing }: ChannelActivity): boolean =>
  state === 'on' && failing > 0;

/** Undefined: nobody knows, because there are no sums of earlier days: the relay is young, or nobody called any channel. */
export function isIdle(
  state: string,
  { calls }: ChannelActivity,
  { since, days }: Pick<ActivityView, 'since' | 'days'>,
): boolean | undefined {
  if (state !== 'on' || calls > 0) return false;
  const isKnown = since !== undefined && Date.parse(days.to) - Date.parse(since) >= idleDays * dayMs;
  return isKnown ? true : undefined;
}

export interface RestingPlace {
  kind: RestKind | 'failures';
  /** Epoch milliseconds. Of failures in a row: when the last one was. */
  atMs: number;
  /** The model that rests. Undefined: the whole channel, or one of its secrets. */
  model: string | undefined;
  /** Failures in a row that have not led to a rest. */
  failures?: number;
}

/** What rests now, why, and until when: each fact once, those that keep calls away the longest first. */
export function restingPlaces(
  channel: ChannelRow,
  entries: ReadonlyMap<number, HealthEntry>,
  nowMs: number,
): RestingPlace[] {
  const found = new Map<number, RestingPlace>();
  for (const name of channel.models)
    for (const candidate of candidatesOf(channel, name))
      for (const [index, key] of healthKeysOf(candidate).entries()) {
        const entry = entries.get(key);
        if (!entry || forgottenAtMs(entry) <= nowMs) continue;
        const model = index === 0 ? undefined : name;
        found.set(
          key,
          entry.kind === 'failures'
            ? { kind: 'failures', atMs: entry.lastMs, model, failures: entry.count }
            : { kind: entry.kind, atMs: Math.max(entry.untilMs, entry.statedUntilMs ?? 0), model },
        );
      }
  return [...found.values()].toSorted((a, b) => b.atMs - a.atMs);
}

export type ChannelWithRests = ListedChannel & { rests: RestingPlace[] };

/** As listed, each with what is known against it. */
export function channelsWithRests(
  rows: readonly unknown[],
  rules: { local: boolean },
  known: { entries: ReadonlyMap<number, HealthEntry>; nowMs: number },
): ChannelWithRests[] {
  const usable = new Map(usableChannels(rows, rules).map((each) => [each.id, each]));
  return listedChannels(rows, rules).map((each) => {
    const row = usable.get(each.id);
    return Object.assign({}, each, { rests: row ? restingPlaces(row, known.entries, known.nowMs) : [] });
  });
}

export interface ChannelWithSums extends ChannelWithRests {
  sum: DailyFigures;
  activity: ChannelActivity;
  isIdle: boolean | undefined;
}

/** `days`: of the figures and of `served`. `knownFrom`: since when last calls and failures are known. */
export type ChannelsView = Awaited<ReturnType<typeof viewChannels>>;

/** The figures are of today and yesterday. */
export async function viewChannels(ports: OperatorPorts) {
  const { clock, pages, tables, target } = ports;
  const nowMs = clock.now();
  const days = { from: utcDay(nowMs - dayMs), to: utcDay(nowMs) };
  const [rows, entries, active] = await Promise.all([
    tables.scan('channels'),
    pages.health(),
    channelActivity(ports),
  ]);
  const served = active.served.filter(({ day }) => day >= days.from);
  const byChannel = Map.groupBy(served, ({ channel }) => channel);
  return {
    days,
    knownFrom: active.since,
    served,
    problems: active.problems,
    channels: channelsWithRests(rows, target, { entries, nowMs }).map((each) => {
      const activity = active.channels.get(each.id.slice(0, 200)) ?? noActivity;
      return Object.assign({}, each, {
        sum: sumOfFigures(byChannel.get(each.id) ?? []),
        activity,
        isIdle: isIdle(each.state, activity, active),
      });
    }),
  };
}
