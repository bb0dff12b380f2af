/**
 * Views of channels: found by id, listed in the order in which the relay tries them, with what they did in some days and what
 * is known against them now. Reads sums, never the ledger. Shows no value of a row with a problem, except its id.
 */
import { addStackWarnings } from '../../config/cross-checks.ts';
import {
  listChannelSecrets,
  readChannel,
  secretsOf,
  type ChannelRow,
} from '../../config/rows/channel-row.ts';
import { findStackProblem, findReferenceProblem } from '../../config/rows/secret-reference.ts';
import { findReferenceOwners } from '../../config/setting-rows.ts';
import { findBalances, type BalancePorts, type FoundBalance } from '../../relay/alerts/upstream-balance.ts';
import { candidatesOf } from '../../relay/call/serving-channels.ts';
import { healthKeysOf } from '../../relay/health/health-recorder.ts';
import { expiryMsOf, type HealthEntry, type CooldownKind } from '../../relay/ports/runtime-stores.ts';
import { findBalanceReport } from '../../upstreams/types/channel-attributes.ts';
import { shortenChannelId } from '../../wire/ids.ts';
import { utcDay, dayMs } from '../../wire/iso-time.ts';
import { asRecord, compareCodeUnits, textIn } from '../../wire/json.ts';
import { readAllRows, sumBy, sumOfFigures } from '../ledger/ledger.ts';
import type { OperatorPorts, RawRow, ServedDay } from '../operator-ports.ts';
import { Failure, usageFailure } from '../plan.ts';
import { summarizeAttempts } from './channel-health.ts';

/** Throws a Failure if there is no such channel, or if the relay would not use its row. */
export async function findChannel({ tables, target }: OperatorPorts, id: string) {
  const raw = await tables.get('channels', id);
  if (raw === undefined) throw usageFailure(`no channel ${id}: see \`channel list\``);
  const reading = readChannel(raw, target);
  if ('problem' in reading) throw new Failure(`channel ${id} is invalid: ${reading.problem}`);
  return { raw, channel: reading.row, warnings: reading.warning === undefined ? [] : [reading.warning] };
}

/** The rows that the relay uses as they are. */
export const listUsableChannels = (rows: readonly unknown[], rules: { local: boolean }): ChannelRow[] =>
  rows.flatMap((raw) => {
    const reading = readChannel(raw, rules);
    return 'problem' in reading ? [] : [reading.row];
  });

/**
 * Reads the channel's first key, or the key of `reference`. Undefined if there is none. Throws a Failure if the key can't be read.
 * @param secretEnv the environment variable that contains the key; overrides the row's reference
 */
export async function readChannelSecret(
  { secrets, tables, target }: OperatorPorts,
  channel: ChannelRow,
  secretEnv: string | undefined,
  reference?: string,
): Promise<string | undefined> {
  if (secretEnv !== undefined) return secrets.variable(secretEnv);
  const named = listChannelSecrets(channel).find((each) => each.reference === (reference ?? each.reference));
  if (named === undefined) return undefined;
  // Someone may have written another purpose's secret into the table by hand.
  const owners = findReferenceOwners(await tables.scan('settings'), target.owners);
  const problem = findReferenceProblem(named, { ...target, owners });
  if (problem !== undefined) throw new Failure(`channel ${channel.id} is invalid: secret: ${problem}`);
  return secrets.read(named.reference, named);
}

/**
 * Asks upstreams for the balance of each secret: for one channel, or for all whose upstream reports it in a known form. Throws a Failure
 * if the one channel's upstream does not.
 */
export async function viewBalances(ports: OperatorPorts, id: string | undefined): Promise<FoundBalance[]> {
  const rows =
    id === undefined
      ? listUsableChannels(await ports.tables.scan('channels'), ports.target)
      : [(await findChannel(ports, id)).channel];
  const reportingChannels = rows.filter(findBalanceReport);
  if (id !== undefined && reportingChannels.length === 0)
    throw new Failure(`the upstream of ${id} reports no balance in a known form: see balance_form`);
  const readSecret: BalancePorts['readSecret'] = (reference, _host, channel) =>
    readChannelSecret(ports, channel, undefined, reference);
  return findBalances({ transport: ports.upstreams, clock: ports.clock, readSecret }, reportingChannels);
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
  /** The result of the alert's last check. */
  balance?: { atMs: number; isLow: boolean; text: string };
  /** Cooldowns, if the runtime table was read. */
  rests: RestingPlace[];
}

export const listChannels = async (ports: OperatorPorts): Promise<ListedChannel[]> =>
  sortChannels(await ports.tables.scan('channels'), ports);

/** In the order in which they are tried. Rows with a problem come last. */
export const sortChannels = (
  rows: readonly unknown[],
  { clock, target }: OperatorPorts,
  entries: HealthEntries = new Map(),
): ListedChannel[] =>
  rows
    .map((raw) =>
      describeChannel(raw as RawRow, target, (channel) => listCooldowns(channel, entries, clock.now())),
    )
    .toSorted(
      (a, b) =>
        // For two rows with a problem the difference is NaN, so they are sorted by id.
        (b.priority ?? -Infinity) - (a.priority ?? -Infinity) || compareCodeUnits(a.id, b.id),
    );

function describeChannel(
  raw: RawRow,
  rules: { local: boolean },
  restsOf: (row: ChannelRow) => RestingPlace[],
): ListedChannel {
  const id = String(raw['id']);
  const reading = readChannel(raw, rules);
  // A secret may have been typed into a wrong attribute, so none is shown.
  const problem = 'problem' in reading ? reading.problem : findStackProblem(raw, rules);
  if (!('row' in reading) || problem !== undefined)
    return { id, state: 'bad', rests: [], ...(problem !== undefined && { problem }) };
  const { row } = reading;
  const warning = addStackWarnings(raw, reading.warning);
  const { state, priority, weight, models, endpoint } = row;
  const shown = { priority, weight, models, endpoint, secret: secretsOf(row), rests: restsOf(row) };
  // Anybody may have edited the note by hand.
  const { at: atMs, low, text } = asRecord(row.balance_below === undefined ? undefined : raw['_balance']);
  const balance = typeof atMs === 'number' && { balance: { atMs, isLow: low === true, text: textIn(text) } };
  return { id, state: state ? 'on' : 'off', ...shown, ...balance, ...(warning !== undefined && { warning }) };
}

const activityDays = 14;
/** A channel that is on and was not called for so long is idle, or for longer. */
const idleDays = 10;

export type ChannelWithSums = ChannelsView['channels'][number];

/**
 * `days`: today and yesterday, of which `sum` and `served` are. `knownFrom`: the first day with a call of any channel, since when last
 * calls and failures are known.
 */
export type ChannelsView = Awaited<ReturnType<typeof viewChannels>>;

/**
 * View: all channels with their last attempts and failures, even if another channel answered the call. For 300 models on two channels, the
 * days are about 3 MB. `isIdle`: undefined if there are no sums of earlier days; `isFailing`: the channel is on, and all attempts
 * of its last day failed; `marks`: the differences from the same hours of the last week.
 */
export async function viewChannels(ports: OperatorPorts) {
  const { clock, ledger, pages, tables } = ports;
  const [nowMs, to] = [clock.now(), utcDay(clock.now())];
  const [rows, { rows: served, problems }, { entries, marks }] = await Promise.all([
    tables.scan('channels'),
    readAllRows(ledger.served({ from: utcDay(nowMs - activityDays * dayMs), to })),
    pages.health(),
  ]);
  const days = { from: utcDay(nowMs - dayMs), to };
  const isRecent = ({ day }: ServedDay): boolean => day >= days.from;
  // Sorted by day.
  const knownFrom = served[0]?.day;
  const isKnown = knownFrom !== undefined && Date.parse(to) - Date.parse(knownFrom) >= idleDays * dayMs;
  const byChannel = Map.groupBy(served, ({ channel }) => channel);
  const channels = sortChannels(rows, ports, entries).map((each) => {
    const id = shortenChannelId(each.id);
    const own = byChannel.get(id) ?? [];
    const activity = activityOf(own, nowMs);
    const failing = findFailing(own.filter(isRecent))?.attempts ?? 0;
    const isOn = each.state === 'on';
    const isIdle = isOn && activity.attempts === 0 ? isKnown || undefined : false;
    const sum = sumOfFigures(own.filter(isRecent));
    const marksOfChannel = marks.filter(({ channel }) => isOn && channel === id);
    const facts = { isIdle, failing, isFailing: isOn && failing > 0, sum, marks: marksOfChannel };
    return Object.assign({}, each, activity, facts);
  });
  return { days, knownFrom, served: served.filter(isRecent), problems, channels };
}

/**
 * Finds the attempts of a channel's last day with any, if all of them failed. The overview reads only today and yesterday, so no page looks
 * further back. `isRescued`: other channels answered the calls.
 */
export function findFailing(recent: readonly ServedDay[]) {
  const last = recent.reduce((day, each) => (each.day > day ? each.day : day), '');
  const sum = sumOfFigures(recent.filter(({ day }) => day === last));
  const { attempts, failed } = summarizeAttempts(sum);
  return attempts > 0 && failed === attempts
    ? { attempts, isRescued: (sum.counts.calls ?? 0) === 0 }
    : undefined;
}

function activityOf(served: readonly ServedDay[], nowMs: number) {
  const days = sumBy(served, ({ day }) => day).map(({ name, figures }) => {
    const { attempts, failed } = summarizeAttempts(figures);
    return { day: name, attempts, failed };
  });
  const tried = days.filter(({ attempts }) => attempts > 0);
  return {
    /** Attempts by day. The last entry is today. */
    trend: listDaysBack(nowMs, activityDays).map(
      (day) => days.find(({ day: each }) => each === day)?.attempts ?? 0,
    ),
    attempts: tried.reduce((sum, { attempts }) => sum + attempts, 0),
    failures: tried.reduce((sum, { failed }) => sum + failed, 0),
    lastCall: tried.at(-1)?.day,
    lastFailure: tried.findLast(({ failed }) => failed > 0)?.day,
  };
}

const listDaysBack = (nowMs: number, count: number): string[] =>
  Array.from({ length: count }, (_, at) => utcDay(nowMs - (count - 1 - at) * dayMs));

type HealthEntries = ReadonlyMap<number, HealthEntry>;

export interface RestingPlace {
  kind: CooldownKind | 'failures';
  /** Epoch milliseconds. Of failures in a row: when the last one was. */
  atMs: number;
  /** Undefined when the whole channel or one of its secrets is in cooldown. */
  model: string | undefined;
  /** Failures in a row that have not led to a rest. */
  failures?: number;
}

/** Cooldowns of a channel, the longest first. Each fact is listed once. */
export function listCooldowns(channel: ChannelRow, entries: HealthEntries, nowMs: number): RestingPlace[] {
  const found = new Map<number, RestingPlace>();
  for (const name of channel.models)
    for (const candidate of candidatesOf(channel, name))
      for (const [index, key] of healthKeysOf(candidate).entries()) {
        const entry = entries.get(key);
        if (!entry || expiryMsOf(entry) <= nowMs) continue;
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
