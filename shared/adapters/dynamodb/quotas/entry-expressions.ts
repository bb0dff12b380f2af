/** The writes on one item that few calls make, as DynamoDB expressions. Loaded by the first call that makes one. */
import type {
  DropCountsWrite,
  FreePlacesWrite,
  RenewWrite,
  TombstoneWrite,
} from '../../../billing/quota-writes.ts';
import {
  entryAttribute,
  flagsAttribute,
  flagsIndex,
  numberAttribute,
  placesName,
  untilIndex,
} from './quota-attributes.ts';
import { Clauses, hasItem, isNotOpen, isOpenAs, isOpenUntil, type Expression } from './quota-expressions.ts';

export function tombstoneExpression({ id, entry }: TombstoneWrite): Expression {
  const c = new Clauses();
  c.conditions.push(hasItem(c), isNotOpen(c, id));
  c.set.push(`${c.path('open', id)} = ${c.value('entry', entryAttribute(entry))}`);
  return c.expression();
}

export function renewExpression({ id, entry, until, begins }: RenewWrite): Expression {
  const c = new Clauses();
  c.conditions.push(isOpenAs(c, id, entry));
  const open = c.path('open', id);
  c.set.push(`${open}[${untilIndex}] = ${c.value('until', numberAttribute(until))}`);
  if (begins) {
    const begun = flagsAttribute({ ...entry, queued: undefined });
    c.set.push(`${open}[${flagsIndex}] = ${c.value('begun', begun)}`);
  }
  return c.expression();
}

export function freePlacesExpression({ key, lapsed }: FreePlacesWrite): Expression {
  const c = new Clauses();
  c.conditions.push(hasItem(c));
  for (const [id, until] of lapsed)
    c.conditions.push(until === undefined ? isNotOpen(c, id) : isOpenUntil(c, id, until));
  c.take.push(`${c.path(placesName(key))} ${c.value('ids', { SS: [...lapsed.keys()] })}`);
  return c.expression();
}

export function dropCountsExpression({ minutes, idle }: DropCountsWrite): Expression {
  const c = new Clauses();
  const drop = (condition: string, path: string): void => {
    c.conditions.push(condition);
    c.remove.push(path);
  };
  for (const [key, minute] of minutes) {
    const seen = c.value(`minute ${minute}`, numberAttribute(minute));
    drop(`${c.path('rate', key, 'minute')} = ${seen}`, c.path('rate', key));
  }
  for (const key of idle)
    drop(`${c.path('busy', key)} = ${c.value('zero', numberAttribute(0))}`, c.path('busy', key));
  return c.expression();
}
