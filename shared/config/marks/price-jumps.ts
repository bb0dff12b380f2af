/**
 * Marks of rules that change the price of a model by much, make it free, or replace it at a time that is over: against the newest published version, at the
 * publication of the change. As later compiles find nothing changed, they keep what the row's mark says, until a day after
 * the price begins.
 */
import { priceOf, ruleOf, sinceMs } from '../../billing/price-rule.ts';
import { canonicalJson } from '../../wire/canonical-json.ts';
import { isoTime } from '../../wire/iso-time.ts';
import { keyAttributes } from '../config-rows.ts';
import type { ChargeRow } from '../rows/charge-row.ts';
import { attributeOf } from '../rows/read-row.ts';
import { namesShown } from './names-shown.ts';
import { jumpBetween } from './rate-jump.ts';

const keptMs = 24 * 60 * 60 * 1000;
/** An edit of this minute may be published in the next. */
const lateMs = 10 * 60 * 1000;

export interface ChargesAround {
  charges: readonly ChargeRow[];
  /** Of the version before, sorted by id. */
  before: readonly ChargeRow[];
  /** As the table has them, with their marks. */
  raw: readonly unknown[];
  nowMs: number;
}

/** The warnings by id of the rule. */
export function priceJumps({ charges, before, raw, nowMs }: ChargesAround): Map<number, string[]> {
  const old = new Map(before.map((rule) => [rule.id, canonicalJson(rule)]));
  const marks = new Map(
    raw.map((row) => [attributeOf(row, keyAttributes.charges), attributeOf(row, '_warning')]),
  );
  return new Map(
    charges.map((rule) => [
      rule.id,
      old.get(rule.id) === canonicalJson(rule)
        ? keptOf(marks.get(rule.id), nowMs)
        : jumpsOf(rule, { charges, before, nowMs }),
    ]),
  );
}

const form = /^(?:models|from): at (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ) /;

const keptOf = (mark: unknown, nowMs: number): string[] =>
  typeof mark === 'string'
    ? mark.split('; ').filter((each) => nowMs < Date.parse(form.exec(each)?.[1] ?? '') + keptMs)
    : [];

function jumpsOf(
  rule: ChargeRow,
  { charges, before, nowMs }: { charges: readonly ChargeRow[]; before: readonly ChargeRow[]; nowMs: number },
): string[] {
  const atMs = Math.max(nowMs, sinceMs(rule));
  const models = [...new Set(rule.models)].filter(
    (model) => ruleOf(charges, model, atMs) === rule && ruleOf(before, model, atMs) !== undefined,
  );
  const late = isLate(rule, before, nowMs) && models.length > 0;
  const jumps = Map.groupBy(models, (model) =>
    jumpBetween(priceOf(before, model, atMs), priceOf(charges, model, atMs)),
  );
  jumps.delete('');
  return [
    ...(late
      ? [
          `from: at ${isoTime(nowMs)} this time (${isoTime(sinceMs(rule))}) was over, so the price began at once`,
        ]
      : []),
    ...[...jumps].map(
      ([jump, names]) => `models: at ${isoTime(atMs)} the price of ${namesShown(names)} ${jump}`,
    ),
  ];
}

/** A time that an operator typed as the beginning of a new price, and that was over when it was published. */
const isLate = ({ id, from }: ChargeRow, before: readonly ChargeRow[], nowMs: number): boolean =>
  from !== undefined && from < nowMs - lateMs && before.find((rule) => rule.id === id)?.from !== from;
