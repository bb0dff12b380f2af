/**
 * Plans a change of prices that starts by itself: a rule of its own that begins then, beside the one in force. To change the
 * rule itself would leave its models without a price until then.
 */
import { findPrice, findRule, startMsOf } from '../../billing/price.ts';
import { attributeOf, plainRow } from '../../config/rows/read-row.ts';
import type { ConfigRows } from '../../config/rows/read-table.ts';
import type { ConfigEdit } from '../config/row-changes.ts';
import { normalizeRow, planPutting, planRows, planSetRow, type ConfigPlan } from '../config/write-rows.ts';
import type { OperatorPorts, RawRow } from '../operator-ports.ts';
import { normalizeMoments } from '../moment.ts';
import { partPrices } from '../../wire/chat-response.ts';
import { usageFailure } from '../plan.ts';
import { findLaterRules, readCharges, refuseChanged } from '../rows.ts';
import { describePrice } from '../requests/find-request.ts';
import { isoTime } from '../../wire/iso-time.ts';
import { chooseNextId } from './list-charges.ts';

/**
 * @param id of the rule whose attributes the new one begins with
 * @returns `id`: of the new rule
 */
export async function planAnnouncePrice(
  ports: OperatorPorts,
  announced: { id: number; from: string; attributes: RawRow },
  read?: ConfigRows,
): Promise<{ plan: ConfigPlan; id: number }> {
  const { id, from, attributes } = normalizeMoments(announced, ports.clock.now());
  const rows = read ?? (await ports.config.tables());
  const rule = findRuleById(rows, id);
  checkBeginning(from, { id, own: attributeOf(rule, 'from'), nowMs: ports.clock.now() });
  const { id: _, ...kept } = plainRow(rule) as RawRow;
  const { plan, id: next } = await planNewRule(ports, { ...kept, ...attributes, from }, rows);
  const effect = [`Create rule ${next}, which replaces rule ${id} for these models at ${from}`];
  return { plan: { ...plan, effect }, id: next };
}

/**
 * Plans a rule under the next free id. The rows are read once: an id that is free in one read may be another operator's rule
 * in the next, and a plan made of both would write over it.
 * @param read the rows of the tables, where they were read already
 * @returns `id`: of the new rule
 */
export async function planNewRule(
  ports: OperatorPorts,
  attributes: RawRow,
  read?: ConfigRows,
): Promise<{ plan: ConfigPlan; id: number }> {
  const rows = read ?? (await ports.config.tables());
  const id = chooseNextId(rows.charges);
  const plan = await planSetRow(ports, { table: 'charges', key: id, attributes, isNew: true }, rows);
  return { plan, id };
}

interface Reprice {
  model: string;
  attributes: RawRow;
  /** When the new rule starts; by default at once. */
  from?: string | undefined;
  /** A price that was announced for later: `keep` it, `delete` it, or the time to move it to. */
  announced?: string | undefined;
  /** `fingerprintRow` of the rule that the operator saw. If present, a changed rule is not overwritten. */
  seen?: string | undefined;
}

/**
 * Plans another price for a model, whichever rule prices it now, and warns of the rule's prices that stay. Refuses one that
 * another rule would hide, and one that an announced rule would take back unless the operator decided what becomes of that.
 */
export async function planReprice(
  ports: OperatorPorts,
  { model, attributes, from, announced, seen }: Reprice,
): Promise<ConfigPlan> {
  const rows = await ports.config.tables();
  const row = findRuleOfModel(rows.charges as RawRow[], model, ports.clock.now());
  const id = Number(row['id']);
  refuseChanged(`rule ${id}`, row, seen);
  const { plan: priced, id: own } =
    from === undefined
      ? await planOwnRule(ports, rows, { row, model, attributes })
      : await planAnnouncePrice(ports, { id, from, attributes: { ...attributes, models: [model] } }, rows);
  const { charges } = readCharges(priced.edit.after.charges as RawRow[]);
  const atMs = Math.max(
    ports.clock.now(),
    ...charges.flatMap((rule) => (rule.id === own ? [startMsOf(rule)] : [])),
  );
  const other = findRule(charges, model, atMs);
  if (other && other.id !== own)
    throw usageFailure(
      `rule ${other.id} also prices ${model} and would take precedence: change it with \`charge set ${other.id}\`, or delete it with \`charge off ${other.id}\``,
    );
  const plan = planAnnounced(ports, priced, { model, announced, atMs });
  const staying = ['tiers', ...partPrices].filter((name) => name in row && !(name in attributes));
  if (staying.length === 0) return plan;
  const stays = `${staying.join(', ')} of rule ${id} ${staying.length === 1 ? 'is' : 'are'} unchanged; change ${staying.length === 1 ? 'it' : 'them'} with \`charge set ${own}\``;
  return { ...plan, warnings: [...plan.warnings, stays] };
}

/**
 * A plan with what becomes of the rules that price the model later. Throws a usage failure that names them where that is not
 * decided: a price set "from now on" would silently end when they begin.
 */
function planAnnounced(
  ports: OperatorPorts,
  plan: ConfigPlan,
  { model, announced = '', atMs }: { model: string; announced: string | undefined; atMs: number },
): ConfigPlan {
  const { before, after } = plan.edit;
  const rows = after.charges as RawRow[];
  const later = findLaterRules(readCharges(rows).charges, [model], atMs);
  const [first, ...others] = later;
  if (!first || announced === 'keep') return plan;
  const list = later
    .map(
      (rule) =>
        `${describePrice(findPrice([rule], model, startMsOf(rule)))}, from ${isoTime(startMsOf(rule))}`,
    )
    .join('; ');
  if (announced === '')
    throw usageFailure(
      `another price of ${model} is announced and would replace this one: ${list}. Decide what to do with it (announced): keep, delete, or a new start time`,
    );
  const left = rows.flatMap((row) => {
    if (!later.some(({ id }) => id === row['id'])) return [row];
    const models = (row['models'] as string[]).filter((each) => each !== model);
    return models.length === 0 ? [] : [{ ...row, models }];
  });
  if (announced === 'delete') {
    const effect = `Delete the announced price of ${model}: ${list}`;
    return planEdit(ports, plan, { before, after: { ...after, charges: left } }, effect);
  }
  if (others.length > 0)
    throw usageFailure(`announced: only one price can be moved, so change each with \`charge set\`: ${list}`);
  const { from } = normalizeMoments({ from: announced }, ports.clock.now());
  if (Date.parse(from) <= atMs)
    throw usageFailure(
      `announced: invalid ${announced}, expected keep, delete, or a time after the start of the new price`,
    );
  const row = rows.find((each) => each['id'] === first.id) as RawRow;
  const id = first.models.length === 1 ? first.id : chooseNextId(rows);
  const moved = [...left, { ...(plainRow(row) as RawRow), id, models: [model], from }];
  const effect = `Move the announced price of ${model} to ${from}: ${list}`;
  return planEdit(ports, plan, { before, after: { ...after, charges: moved } }, effect);
}

function planEdit(ports: OperatorPorts, first: ConfigPlan, edit: ConfigEdit, effect: string): ConfigPlan {
  const plan = planRows(ports, edit);
  return { ...plan, effect: [...first.effect, effect], warnings: plan.brought };
}

/**
 * The price of a rule that has the model alone; of one that prices several, a rule of its own takes the model out of the shared one. It is
 * written first, so that the model has a price at every moment.
 */
async function planOwnRule(
  ports: OperatorPorts,
  rows: ConfigRows,
  { row, model, attributes }: { row: RawRow; model: string; attributes: RawRow },
): Promise<{ plan: ConfigPlan; id: number }> {
  const shared = Number(row['id']);
  const kept = plainRow(row) as RawRow & { models: string[] };
  const others = kept.models.filter((each) => each !== model);
  const edit = { table: 'charges', key: shared, attributes, isNew: false } as const;
  if (others.length === 0) return { plan: await planSetRow(ports, edit, rows), id: shared };
  const id = chooseNextId(rows.charges);
  const own = normalizeRow({ ...kept, ...attributes, id, models: [model] });
  const plan = planPutting(ports, rows, { table: 'charges', rows: [{ ...kept, models: others }, own] });
  const effect = [
    `Move ${model} to its own rule ${id}; rule ${shared} keeps the other models (live within 10 s)`,
  ];
  return { plan: { ...plan, effect }, id };
}

/** The row that prices a model by token now. Throws a usage failure where none does. */
export function findRuleOfModel(rows: readonly RawRow[], model: string, nowMs: number): RawRow {
  const rule = findRule(readCharges([...rows]).charges, model, nowMs);
  const row = rows.find((each) => each['id'] === rule?.id);
  if (rule?.type === 'token-billing' && row) return row;
  throw usageFailure(
    rule
      ? `rule ${rule.id} prices ${model} by ${rule.type}: use \`charge set\``
      : `${model} has no price yet: create a rule with \`charge new type=token-billing models=${model} input=... output=...\``,
  );
}

function findRuleById({ charges }: ConfigRows, id: number): unknown {
  const rule = charges.find((row) => attributeOf(row, 'id') === id);
  if (!rule) throw usageFailure(`no rule ${id}: see \`charge list\``);
  return rule;
}

/** Among the rules in force, the one that started last prices a model. */
function checkBeginning(from: string, { id, own, nowMs }: { id: number; own: unknown; nowMs: number }): void {
  const fromMs = Date.parse(from);
  if (fromMs <= nowMs)
    throw usageFailure(`--from ${from}: must be in the future; to change rule ${id} now, leave out --from`);
  if (typeof own === 'string' && fromMs <= Date.parse(own))
    throw usageFailure(
      `--from ${from}: rule ${id} starts later, at ${own}, and would take over then; change rule ${id} itself, without --from`,
    );
}
