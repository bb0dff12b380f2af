import { createHash, createHmac } from 'node:crypto';
import { objectIn, textIn } from '../script/vendor.ts';

/** What stands in `encrypted_content`: opaque for clients, bound to an organisation and an item. */
interface Sealed {
  organization: string;
  item: string;
  text: string;
}

const prefix = 'gAAAA';
const mac = (payload: string): string => createHmac('sha256', 'a double').update(payload).digest('base64url');
const short = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16);

export function encrypted({ organization, item, text }: Sealed): string {
  const payload = Buffer.from(JSON.stringify({ organization: short(organization), item, text })).toString(
    'base64url',
  );
  return `${prefix}${payload}.${mac(payload)}`;
}

/** Why the content cannot be used for the item; undefined where it can. */
export function encryptionProblem(
  content: string,
  { organization, item }: { organization: string; item: unknown },
): string | undefined {
  const [payload = '', signature] = content.slice(prefix.length).split('.');
  if (!content.startsWith(prefix) || signature !== mac(payload))
    return 'Encrypted content could not be decrypted or parsed.';
  const sealed = objectIn(Buffer.from(payload, 'base64url').toString());
  if (sealed?.['organization'] !== short(organization))
    return 'Encrypted content organization_id did not match the target organization.';
  // Codex leaves the id out.
  if (item !== undefined && item !== null && item !== sealed['item'])
    return 'Encrypted content item_id did not match the target item id.';
  return undefined;
}

/** Digits that stand in all ids of one turn: equal requests get equal ids. */
export const turnDigits = (organization: string, parts: string[]): string =>
  createHash('sha256')
    .update(JSON.stringify([organization, parts]))
    .digest('hex')
    .slice(0, 24);

/** The reasoning item of the turn that a call's item belongs to. */
export const reasoningIdOf = (callItemId: unknown): string | undefined => {
  const digits = /^(?:fc|ctc)_([0-9a-f]{24})r\d+$/.exec(textIn(callItemId))?.[1];
  return digits && `rs_${digits}`;
};
