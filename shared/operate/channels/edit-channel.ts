/**
 * Changes channels: adds one or overwrites it, switches one on or off. Refuses a row that the relay would not use.
 */
import { readChannel, secretsOf, type ChannelRow } from '../../config/rows/channel-row.ts';
import { plainRow } from '../../config/rows/read-row.ts';
import { isOfStack } from '../../config/rows/secret-reference.ts';
import type { OwnAttributeName } from '../../upstreams/types/channel-types.ts';
import type { WrittenRules } from '../../upstreams/quirks.ts';
import { asRecord, canonicalJson, type JsonRecord } from '../../wire/json.ts';
import { putOver } from '../config/row-changes.ts';
import { planRows, planSetRow, type ConfigPlan } from '../config/write-rows.ts';
import type { OperatorPorts, RawRow, RowWrite, Target } from '../operator-ports.ts';
import { requireValid, usageFailure, type Plan } from '../plan.ts';
import { setAttributes } from '../rows.ts';
import { findChannel, listUsableChannels } from './list-channels.ts';

export interface ChannelInput {
  id: string;
  models: string[];
  type?: string;
  endpoint?: string;
  /** Attributes that only some channel types have, by their names in rows. */
  attributes?: Partial<Record<OwnAttributeName, string>>;
  name?: string;
  secret?: string;
  priority?: number;
  weight?: number;
  mapper?: Record<string, string>;
  disabled?: boolean;
}

/** Adds a channel during set-up. An identical row from an earlier run is kept; a different one is refused. */
export async function planAddChannel(
  { tables, target }: OperatorPorts,
  input: ChannelInput,
): Promise<Plan<RowWrite> & { warnings: string[] }> {
  const { id } = input;
  const row = channelRowOf(input);
  const { row: read, warning } = checkRow(target, row);
  const conflict = usageFailure(`nothing was written: channel ${id} already exists; choose another --id`);
  const there = await tables.get('channels', id);
  const isSame = there !== undefined && canonicalJson(plainRow(there)) === canonicalJson(row);
  if (there !== undefined && !isSame) throw conflict;
  return {
    changes: isSame ? [] : [{ kind: 'create', table: 'channels', row, conflict }],
    effect: [`Create channel ${id}, ${read.state ? 'enabled' : 'disabled'} (live within 10 s)`],
    questions: [],
    warnings: warning === undefined ? [] : [warning],
  };
}

export function channelRowOf(input: ChannelInput): RawRow {
  const { id, models, type, endpoint, attributes, name, secret, priority, weight, mapper } = input;
  const given = { type, endpoint, ...attributes, name, secret, priority, weight, mapper };
  return setAttributes({ id, models, state: !input.disabled }, given);
}

/** Parses a new row as the relay does. Throws a Failure if the relay would not use it. */
function checkRow({ stack, ...target }: Target, row: RawRow): { row: ChannelRow; warning?: string } {
  const reading = requireValid(readChannel(row, { ...target, oldUses: new Set() }), 'nothing was written: ');
  const foreign = secretsOf(reading.row).find((reference) => !isOfStack(reference, stack));
  if (foreign === undefined) return reading;
  throw usageFailure(
    `nothing was written: stack ${stack} can't read ${foreign}; use ssm:/relay/${stack}/... or secretsmanager:${stack}/...`,
  );
}

/** Says which models nobody else serves. `carryOutWrites` carries it out. */
export async function planSwitchChannel(
  ports: OperatorPorts,
  { id, on }: { id: string; on: boolean },
): Promise<ConfigPlan> {
  const raw = on ? undefined : await ports.tables.get('channels', id);
  const bad = raw && 'problem' in readChannel(raw, ports.target) ? raw : undefined;
  const models = bad ? [] : (await findChannel(ports, id)).channel.models;
  const plan = bad
    ? await planStop(ports, bad)
    : await planSetRow(ports, { table: 'channels', key: id, attributes: { state: on } });
  if (plan.changes.length === 0)
    return { ...plan, effect: [`Channel ${id} is already ${on ? 'enabled' : 'disabled'}`] };
  if (on) return { ...plan, effect: [`Enable channel ${id} (live within 10 s)`] };
  const others = listUsableChannels(plan.edit.before.channels, ports.target).filter(
    (row) => row.state && row.id !== id,
  );
  const served = new Set(others.flatMap((row) => row.models));
  const lost = models.filter((model) => !served.has(model));
  return {
    ...plan,
    effect: [
      `Disable channel ${id} (live within 10 s)`,
      bad
        ? 'Its row is invalid, so its last valid version was in use: fix it before you enable it again'
        : lost.length > 0
          ? `No other enabled channel serves ${lost.join(', ')}: calls to them will fail`
          : 'Other channels serve all of its models',
    ],
    questions: [`Disable channel ${id}?`],
  };
}

/** An invalid row is served in its last valid version, so it can be disabled without being corrected. */
async function planStop(ports: OperatorPorts, raw: RawRow): Promise<ConfigPlan> {
  const row = { ...(plainRow(raw) as RawRow), state: false };
  const before = await ports.config.tables();
  const { refusal: _, ...plan } = planRows(ports, { before, after: putOver(before, { channels: [row] }) });
  return plan;
}

/** `params` of a row with more rules of models, by their public names. */
export function addModelRules(raw: RawRow, rules: Record<string, WrittenRules>): JsonRecord {
  const params = asRecord(raw['params']);
  const written = asRecord(params['model_rules']);
  const own = Object.entries(rules).map(([name, more]) => [name, { ...asRecord(written[name]), ...more }]);
  return { ...params, model_rules: { ...written, ...Object.fromEntries(own) } };
}
