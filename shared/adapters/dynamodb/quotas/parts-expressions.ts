/** The changes of a transaction over parts of an account, as DynamoDB expressions. */
import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import type { CloseRow } from '../../../billing/ledger-row.ts';
import type { PartChange, PartsWrite } from '../../../billing/parts/parts-write.ts';
import { accountRate, type CloseRecord, type RateCount } from '../../../billing/quota-item.ts';
import type { Attributes } from '../attributes.ts';
import { closeRecordAttribute, emptyAttributes, numberAttribute } from './quota-attributes.ts';
import {
  Clauses,
  hasItem,
  hasNoOverdraft,
  hasParts,
  markOverdraft,
  mayTake,
  type Change,
} from './quota-expressions.ts';

/** A part that is created has its share at once. */
export function createdPart(
  { account, parts = 1, overdraft }: PartsWrite,
  { part, moved, plan, minute }: PartChange,
): Attributes {
  const counts = [...plan].flatMap(([key, { calls }]) =>
    calls === 0 ? [] : [[key, numberAttribute(calls)] as const],
  );
  return {
    ...emptyAttributes({ account, part }),
    available: numberAttribute(moved),
    moved: numberAttribute(moved),
    parts: numberAttribute(parts),
    plan: { M: Object.fromEntries(counts) },
    rate: { M: minute ? { [accountRate]: minuteAttribute(minute.counted) } : {} },
    ...(overdraft === 'begins' && { overdraft: { BOOL: true } }),
  };
}

export function changeExpression({ parts, made, overdraft }: PartsWrite, change: PartChange): Change {
  const { seenParts = 1, moved, plan, settledBefore } = change;
  const c = new Clauses();
  const zero = c.value('zero', numberAttribute(0));
  const [available, received] = [c.path('available'), c.path('moved')];
  c.conditions.push(hasParts(c, seenParts));
  const amount = c.value('moved', numberAttribute(moved));
  c.set.push(
    `${available} = ${available} + ${amount}`,
    `${received} = if_not_exists(${received}, ${zero}) + ${amount}`,
  );
  const leavesNoDebt = overdraft === 'ends' || overdraft === 'none';
  // The one part of a joined account owes what the account does.
  if (leavesNoDebt || (moved < 0n && parts !== 1))
    c.conditions.push(`${available} >= ${c.value('given', numberAttribute(-moved))}`);
  if (overdraft === 'begins') markOverdraft(c);
  if (overdraft === 'none') c.conditions.push(hasNoOverdraft(c));
  if (overdraft === 'ends') c.conditions.push(`attribute_exists(${c.path('overdraft')})`);
  if (overdraft === 'ends' || parts === 1) c.remove.push(c.path('overdraft'));
  if (parts !== undefined) c.set.push(`${c.path('parts')} = ${c.value('newParts', numberAttribute(parts))}`);
  if (made !== undefined && change.part === 0)
    c.set.push(`${c.path('made')} = ${c.value('made', numberAttribute(made))}`);
  for (const [key, { calls, countedMax }] of plan) {
    const count = c.path('plan', key);
    if (calls !== 0)
      c.set.push(
        `${count} = if_not_exists(${count}, ${zero}) + ${c.value(`calls ${key}`, numberAttribute(calls))}`,
      );
    if (!Number.isFinite(countedMax)) continue;
    const max = c.value(`max ${key}`, numberAttribute(countedMax));
    c.conditions.push(`(${count} <= ${max} OR attribute_not_exists(${count}))`);
  }
  if (change.minute) setMinute(c, change.minute);
  if (settledBefore !== undefined)
    c.conditions.push(
      `${c.path('settled')} = ${c.value('settled', numberAttribute(settledBefore))}`,
      `size(${c.path('open')}) = ${zero}`,
      // Nothing was opened and closed since, so this is what was read.
      `${available} = ${c.value('given', numberAttribute(-moved))}`,
    );
  return c.expression();
}

function setMinute(c: Clauses, { seen, counted }: NonNullable<PartChange['minute']>): void {
  const path = c.path('rate', accountRate);
  c.conditions.push(
    seen ? `${path} = ${c.value('seen', minuteAttribute(seen))}` : `attribute_not_exists(${path})`,
  );
  c.set.push(`${path} = ${c.value('counted', minuteAttribute(counted))}`);
}

/** As a reserve writes it. */
const minuteAttribute = ({ minute, count, tokens = 0 }: RateCount): AttributeValue => ({
  M: { minute: numberAttribute(minute), count: numberAttribute(count), tokens: numberAttribute(tokens) },
});

/** Says that a part may be below zero. */
export function markExpression(parts: number): Change {
  const c = new Clauses();
  c.conditions.push(hasParts(c, parts));
  markOverdraft(c);
  return c.expression();
}

/**
 * The amounts of a charge that came too late.
 * @param overdrawn it overdraws the first of so many parts, which are marked with it
 */
export function lateExpression(difference: bigint, row: CloseRow, overdrawn?: number): Change {
  const c = new Clauses();
  const amount = c.value('amount', numberAttribute(difference));
  const [available, spent, settled] = [c.path('available'), c.path('spent'), c.path('settled')];
  c.conditions.push(hasItem(c));
  if (overdrawn !== undefined) {
    c.conditions.push(hasParts(c, overdrawn));
    markOverdraft(c);
  } else if (difference > 0n) c.conditions.push(mayTake(c, 0, difference));
  c.set.push(
    `${available} = ${available} - ${amount}`,
    `${spent} = ${spent} + ${amount}`,
    `${settled} = ${settled} + ${c.value('one', numberAttribute(1))}`,
    `${c.path('last')} = ${c.value('last', closeRecordAttribute(lateRecord(row)))}`,
  );
  return c.expression();
}

const lateRecord = ({ id, kind, charge, at }: CloseRow): CloseRecord => ({
  id,
  kind,
  charge,
  at: Math.floor(Date.parse(at) / 1000),
});
