/**
 * Plans a change of prices that starts by itself: a rule of its own that begins then, beside the one in force. To change the
 * rule itself would leave its models without a price until then.
 */
import { attributeOf, plainRow } from '../../config/rows/read-row.ts';
import type { ConfigPlan } from '../config/apply-rows.ts';
import { onRows, planSetRow } from '../config/set-row.ts';
import { usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { RawRow } from '../row-tables.ts';

export interface AnnouncedPrice {
  /** The rule whose attributes the new one begins with. */
  id: number;
  /** ISO 8601. */
  from: string;
  attributes: RawRow;
}

type Ports = Pick<OperatorPorts, 'clock' | 'config' | 'target'>;

/** @returns `id`: of the new rule */
export async function planAnnouncePrice(
  ports: Ports,
  { id, from, attributes }: AnnouncedPrice,
): Promise<{ plan: ConfigPlan; id: number }> {
  const rows = await ports.config.tables();
  const rule = rows.charges.find((row) => attributeOf(row, 'id') === id);
  if (!rule) throw usageFailure(`there is no rule ${id}: see \`charge list\``);
  checkBeginning(from, { id, own: attributeOf(rule, 'from'), nowMs: ports.clock.now() });
  const { id: _, ...kept } = plainRow(rule) as RawRow;
  const { plan, id: next } = await planNewRule(onRows(ports, rows), { ...kept, ...attributes, from });
  const effect = [`rule ${next} prices these models from ${from} on; rule ${id} stays until then.`];
  return { plan: { ...plan, effect }, id: next };
}

/**
 * Plans a rule under the next free id. The rows are read once: an id that is free in one read may be another operator's rule
 * in the next, and a plan made of both would write over it.
 * @returns `id`: of the new rule
 */
export async function planNewRule(
  ports: Ports,
  attributes: RawRow,
): Promise<{ plan: ConfigPlan; id: number }> {
  const rows = await ports.config.tables();
  const id = nextId(rows.charges);
  const plan = await planSetRow(onRows(ports, rows), { table: 'charges', key: id, attributes, isNew: true });
  return { plan, id };
}

/** Of the rules in force the one with the latest beginning prices a model. What is no time is refused with the row. */
function checkBeginning(from: string, { id, own, nowMs }: { id: number; own: unknown; nowMs: number }): void {
  const fromMs = Date.parse(from);
  if (fromMs <= nowMs)
    throw usageFailure(
      `--from ${from}: wanted a time to come; without --from rule ${id} itself changes at once`,
    );
  if (typeof own === 'string' && fromMs <= Date.parse(own))
    throw usageFailure(
      `--from ${from}: rule ${id} begins at ${own} and would take over then; change it itself, without --from`,
    );
}

/** The id after the highest. */
export const nextId = (charges: readonly unknown[]): number =>
  Math.max(0, ...charges.map((row) => Number(attributeOf(row, 'id'))).filter(Number.isSafeInteger)) + 1;
