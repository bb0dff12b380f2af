/** Changes attributes of a key's row: whose it is, what it may call, its limits. `carryOutWrites` carries it out. */
import { canonicalJson } from '../../wire/canonical-json.ts';
import { namedModels } from '../../config/marks/key-doubts.ts';
import { plainValue, textOf } from '../../config/rows/read-row.ts';
import { findAccount } from '../find-account.ts';
import { Failure, usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { Plan } from '../plan.ts';
import type { RawRow, RowWrite } from '../row-tables.ts';
import { findKey, type FoundKey } from './find-key.ts';
import { keyState } from './key-state.ts';
import { unservedModels } from './unserved-models.ts';

export interface EditKeyPlan extends Plan<RowWrite> {
  /** The key's name in messages. */
  name: string;
  /** What it may do afterwards, in words. */
  rights: string;
}

/** An undefined attribute is removed; others stay. */
export async function planEditKey(
  ports: OperatorPorts,
  written: string,
  attributes: RawRow,
): Promise<EditKeyPlan> {
  const plan = editOf(ports, await findKey(ports, written), attributes);
  return { ...plan, warnings: await unservedModels(ports, namedModelsOrAll(attributes)) };
}

const namedModelsOrAll = (attributes: RawRow): string[] | undefined =>
  attributes['models'] === undefined ? undefined : namedModels(attributes);

/** Lets a disabled key work again. Refuses one that would not work all the same. */
export async function planEnableKey(ports: OperatorPorts, written: string): Promise<EditKeyPlan> {
  const key = await findKey(ports, written);
  if (key.row['_leaked'] !== undefined)
    throw usageFailure(`${key.name} was disabled because it leaked: make another with \`key create\``);
  const plan = editOf(ports, key, { enabled: true });
  const { state, why } = keyState({ ...key.row, enabled: true }, ports.clock.now());
  if (state !== 'usable') throw new Failure(`${key.name} would not work: ${why}`);
  return plan;
}

/** Lets another account pay for the key. What it called before stays with the former one. */
export async function planMoveKey(
  ports: OperatorPorts,
  { written, account }: { written: string; account: string },
): Promise<EditKeyPlan> {
  const [key] = [await findKey(ports, written), await findAccount(ports, account)];
  const plan = editOf(ports, key, { account });
  const from = textOf(key.row, 'account');
  return {
    ...plan,
    questions: plan.changes.length > 0 ? [`Let ${account} pay for ${key.name}?`] : [],
    effect:
      plan.changes.length > 0
        ? [`${account} pays for ${key.name} within 30 seconds; earlier calls stay with ${from}`]
        : plan.effect,
  };
}

function editOf({ clock }: OperatorPorts, { hash, name, row }: FoundKey, attributes: RawRow): EditKeyPlan {
  const names = Object.keys(attributes).filter((each) => !isSame(row[each], attributes[each]));
  const after = Object.fromEntries(
    Object.entries({ ...row, ...attributes }).filter(([, value]) => value !== undefined),
  );
  const { state, why } = keyState(after, clock.now());
  if (state === 'invalid') throw usageFailure(`nothing was written: ${why}`);
  const pick = (from: RawRow): RawRow => Object.fromEntries(names.map((each) => [each, from[each]]));
  const conflict = new Failure('somebody else changed the row meanwhile: look at it again, then repeat');
  return {
    changes:
      names.length === 0
        ? []
        : [
            {
              kind: 'update',
              table: 'keys',
              key: { hash },
              attributes: pick(attributes),
              unchanged: pick(row),
              conflict,
            },
          ],
    effect:
      names.length === 0
        ? [`nothing to write: ${name} is like this already`]
        : [`${name} within 30 seconds: ${why}${state === 'usable' ? '' : ` (${state})`}`],
    questions: [],
    name,
    rights: why,
  };
}

const isSame = (a: unknown, b: unknown): boolean =>
  canonicalJson(plainValue(a) ?? null) === canonicalJson(plainValue(b) ?? null);
