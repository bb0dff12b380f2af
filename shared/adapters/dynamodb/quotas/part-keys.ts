/**
 * Keys of an account's parts in the table `quotas`: part 0 has the account's name, part 3 has `<account>#3`.
 * Accounts whose name ends like that are refused where rows are read.
 */
import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import type { PartOfAccount } from '../../../billing/quota-writes.ts';
import type { Attributes } from '../attributes.ts';

export const partName = ({ account, part = 0 }: PartOfAccount): string =>
  part === 0 ? account : `${account}#${part}`;

export const partKey = (of: PartOfAccount): Record<'account', AttributeValue> => ({
  account: { S: partName(of) },
});

/** The account and part of an item. The attribute `part` decides: a name may end like a part's key. */
export function partOf(attributes: Attributes): { account: string; part: number } {
  const name = attributes['account']?.S ?? '';
  const part = Number(attributes['part']?.N ?? 0);
  const suffix = `#${part}`;
  return part > 0 && name.endsWith(suffix)
    ? { account: name.slice(0, -suffix.length), part }
    : { account: name, part: 0 };
}
