/** Switches a channel on or off, and says which models nobody else serves. `carryOutWrites` carries it out. */
import { readChannel } from '../../config/compile/read-channel.ts';
import { plainRow } from '../../config/rows/read-row.ts';
import { planApply, type ConfigPlan } from '../config/apply-rows.ts';
import { planSetRow } from '../config/set-row.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { RawRow } from '../row-tables.ts';
import { findChannel } from './find-channel.ts';

type Ports = Pick<OperatorPorts, 'clock' | 'config' | 'tables' | 'target'>;

export async function planSwitchChannel(
  ports: Ports,
  { id, on }: { id: string; on: boolean },
): Promise<ConfigPlan> {
  const raw = on ? undefined : await ports.tables.get('channels', id);
  if (raw && 'problem' in readChannel(raw, ports.target)) return planStop(ports, raw);
  const { channel } = await findChannel(ports, id);
  const plan = await planSetRow(ports, { table: 'channels', key: id, attributes: { state: on } });
  if (plan.changes.length === 0)
    return { ...plan, effect: [`channel ${id} is ${on ? 'on' : 'off'} already`] };
  if (on) return { ...plan, effect: [`channel ${id} is switched on; live within 10 seconds.`] };
  const { channels } = await ports.config.tables();
  const others = new Set(
    channels.flatMap((raw) => {
      const reading = readChannel(raw, ports.target);
      return 'row' in reading && reading.row.state && reading.row.id !== id ? reading.row.models : [];
    }),
  );
  const lost = channel.models.filter((model) => !others.has(model));
  return {
    ...plan,
    effect: [
      `channel ${id} is switched off; live within 10 seconds.`,
      lost.length > 0
        ? `nobody else serves ${lost.join(', ')}: calls of them are refused`
        : 'other channels serve all of its models',
    ],
    questions: [`Switch channel ${id} off?`],
  };
}

/** Of a row with a problem an earlier version serves. It can be stopped without mending the row. */
async function planStop(ports: Ports, raw: RawRow): Promise<ConfigPlan> {
  const id = String(raw['id']);
  const row = { ...(plainRow(raw) as RawRow), state: false };
  const text = JSON.stringify({ channels: [row] });
  const { refusal: _, ...plan } = await planApply(ports, { name: `channel ${id}`, text }, {});
  if (plan.changes.length === 0) return { ...plan, effect: [`channel ${id} is off already`] };
  return {
    ...plan,
    effect: [
      `channel ${id} is switched off; live within 10 seconds.`,
      'its row has a problem, so the last good version of it served: mend it before it is switched on',
    ],
    questions: [`Switch channel ${id} off?`],
  };
}
