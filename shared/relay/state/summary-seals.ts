/**
 * Summaries in the place of a conversation, as their client keeps them: sealed for the account, and for no model, since each can
 * read a text. They are opened while a body is read: what is reserved for a call counts them.
 */
import type { SummaryOpener } from '../../endpoints/endpoint.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import { asRecord, parseJson } from '../../wire/json.ts';
import type { Sealer } from '../ports/host.ts';

/**
 * In UTF-16 code units: what one call may hold, and what each seal counts beside its text. A conversation needs one; a body of 4 MB has
 * room for thousands, each of which may unpack to megabytes.
 */
const lengthMax = 4 * 1024 * 1024;
const stateLength = 64 * 1024;

/** The work left for a call. `openState` returns false if it does not suffice for a seal with a text of this length. */
export interface StateWork {
  openState(length: number): boolean;
}

export const encryptSummary = (sealer: Sealer, account: string, summary: string): string =>
  sealer.seal(JSON.stringify({ account, summary }));

/** For one body. What is damaged or of another account is reported where states are opened. */
export function createSummaryOpener(sealer: Sealer, account: string, work: StateWork): SummaryOpener {
  const texts = new Map<string, string>();
  let length = 0;
  const open = (sealed: string): string => {
    const opened = sealer.open(sealed);
    const text = typeof opened === 'object' ? opened.text : '';
    work.openState(text.length);
    texts.set(sealed, text);
    return text;
  };
  return (sealed, param) => {
    const text = texts.get(sealed) ?? open(sealed);
    length += stateLength + text.length;
    if (length > lengthMax)
      throw new InvalidRequest(
        'conversation_too_long',
        param,
        `The compaction items of a request may have ${lengthMax} characters in total. Send only the last one.`,
      );
    const { account: owner, summary } = asRecord(parseJson(text));
    return owner === account && typeof summary === 'string' ? summary : undefined;
  };
}
