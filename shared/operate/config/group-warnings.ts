/**
 * Warns about customers who lose their group prices, because an edit deletes or empties the group, and about an edited group that no
 * customer has. Reads accounts only then.
 */
import { findPriceGroup } from '../../config/customer-prices.ts';
import { AccountRow } from '../../config/rows/account-row.ts';
import { attributeOf, parseRow, plainRow } from '../../config/rows/read-row.ts';
import { emptyRows, joinNames, type ConfigRows } from '../../config/rows/read-table.ts';
import type { Settings } from '../../config/settings.ts';
import type { Snapshot } from '../../config/snapshot.ts';
import { describeOwnPrice, listAccountPrices } from '../../relay/account/account-prices.ts';
import { listOfferedModels } from '../../relay/catalog/catalog-lists.ts';
import { canonicalJson } from '../../wire/json.ts';
import type { AccountPrice } from '../../wire/public-api.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import { formatCount } from '../plan.ts';
import { compileRows, type ConfigEdit } from './row-changes.ts';

/** A warning shows the prices of at most this many models. */
const modelsMax = 3;

/** Adds warnings to the plan: groups that no longer have prices, but that accounts still name, and edited groups without customers. */
export async function addGroupWarnings<Plan extends { edit: ConfigEdit; warnings: string[] }>(
  ports: OperatorPorts,
  plan: Plan,
): Promise<Plan> {
  if (writeGroups(plan.edit.before) === writeGroups(plan.edit.after)) return plan;
  // Compiling all tables takes most of the time of a preview.
  const readSettings = ({ settings }: ConfigRows) =>
    compileRows(ports, { ...emptyRows, settings }).snapshot.settings;
  const [oldSettings, newSettings] = [readSettings(plan.edit.before), readSettings(plan.edit.after)];
  const names = Object.keys(oldSettings.priceGroups ?? {});
  const lostGroups = names.filter((name) => !findPriceGroup(newSettings, name)?.length);
  const edited = Object.entries(newSettings.priceGroups ?? {})
    .filter(
      ([name, prices]) =>
        prices.length > 0 && writeGroup(oldSettings, name) !== writeGroup(newSettings, name),
    )
    .map(([name]) => name);
  if (lostGroups.length === 0 && edited.length === 0) return plan;
  const accounts = (await ports.tables.scan('accounts')).flatMap((raw) => parseRow(AccountRow, raw) ?? []);
  const { snapshot: before } = compileRows(ports, plan.edit.before);
  const { snapshot: after } = compileRows(ports, plan.edit.after);
  const warnings = lostGroups.flatMap((group) => {
    const customers = accounts.filter((row) => row.price_group === group).map(({ account }) => account);
    if (customers.length === 0) return [];
    const effects = describeEffects(group, { before, after, nowMs: ports.clock.now() });
    return [
      `settings price_groups: ${group} has no prices any more, but ${formatCount(customers.length, 'customer')} will still name it: ${joinNames(customers)}. ` +
        `Without own prices they pay the standard prices${effects.length === 0 ? '' : ` (${effects.join('; ')})`}`,
    ];
  });
  const unused = edited.filter((group) => accounts.every((row) => row.price_group !== group));
  const idle = `settings price_groups: no customer has ${joinNames(unused)} yet: set price_group of a customer to it`;
  return { ...plan, warnings: [...plan.warnings, ...warnings, ...(unused.length > 0 ? [idle] : [])] };
}

/** The row of all price groups as text, to compare. Most edits don't change it. */
const writeGroups = ({ settings }: ConfigRows) =>
  canonicalJson(plainRow(settings.find((raw) => attributeOf(raw, 'name') === 'price_groups')));

const writeGroup = (settings: Settings, name: string) => canonicalJson(findPriceGroup(settings, name));

/** Lists price changes, such as `gpt-4o: ¥5 input, ¥10 output per million tokens, instead of ...`. */
function describeEffects(
  group: string,
  { before, after, nowMs }: { before: Snapshot; after: Snapshot; nowMs: number },
): string[] {
  const priceOf = (
    snapshot: Snapshot,
    model: string,
    more: Omit<AccountRow, 'account'>,
  ): AccountPrice | undefined =>
    listAccountPrices({ snapshot, account: { account: '', ...more }, models: [model], nowMs }).prices[0];
  const effects = listOfferedModels(after, nowMs).flatMap((model) => {
    const groupPrice = priceOf(before, model, { price_group: group });
    // Pass the standard price as an own price: only own prices are listed.
    const standardPrice = priceOf(after, model, { prices: [{ models: ['*'], factor: 1 }] });
    const [was, is] = [groupPrice, standardPrice].map((price) => (price ? describeOwnPrice(price) : 'free'));
    return is === was ? [] : [`${model}: ${is}, instead of ${was}`];
  });
  const more = effects.length - modelsMax;
  return [...effects.slice(0, modelsMax), ...(more > 0 ? [`and ${formatCount(more, 'more model')}`] : [])];
}
