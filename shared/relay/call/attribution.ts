/**
 * Whom a call is for, in its client's own words: an end user and tags, for log and ledger. Nothing is decided by them. Every row of the
 * ledger keeps them, so they are bounded; what a client names on purpose and wrongly is refused, what a program adds by
 * itself is left out where it does not fit.
 */
import type { Attribution } from '../../billing/ledger-row.ts';
import { endUserOf, type ChatRequest } from '../../wire/canonical-call.ts';
import { isTagName } from '../../wire/ids.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import { asRecord, parseJson, textIn } from '../../wire/json.ts';
import { claudeCodePrefix, tagsHeader } from '../http/http.ts';

const tagsMax = 5;
const bytesMax = 256;
/** Printable ASCII without what separates tags, and what a search of the log cannot quote. */
const valuePattern = /^(?!.*[",\\])[!-~](?:[ -~]{0,62}[!-~])?$/;
const wantedTags =
  `at most ${tagsMax} tags such as team=search,env=prod: names of at most 32 letters, digits, _ and -, values of at most 64 ` +
  `printable ASCII characters without , " and \\, ${bytesMax} bytes in all`;

/** Claude Code's headers about a call [its gateway guide, November 2026], by the names of the tags after the prefix. */
const clientsTags = Object.entries({
  session: 'session-id',
  agent: 'agent-id',
  parent_agent: 'parent-agent-id',
  request_class: 'request-class',
  agent_type: 'agent-type',
});

/** Throws an InvalidRequest for tags that are not what `wantedTags` says. */
export function attributionOf(
  request: ChatRequest,
  headers: Readonly<Record<string, string | undefined>>,
): Attribution {
  const tags = readTags(headers[tagsHeader] ?? '', tagsHeader);
  for (const [name, header] of clientsTags) {
    const value = headers[claudeCodePrefix + header]?.trim() ?? '';
    if (tags.has(name) || !valuePattern.test(value)) continue;
    tags.set(name, value);
    if (!fits(tags)) tags.delete(name);
  }
  return {
    end_user: showEndUser(endUserOf(request) ?? ''),
    tags: tags.size > 0 ? Object.fromEntries(tags) : undefined,
  };
}

/** Reads `a=b,c=d`. Throws an InvalidRequest that names `param`. */
export function readTags(written: string, param: string): Map<string, string> {
  const tags = new Map<string, string>();
  if (written.trim() === '') return tags;
  for (const pair of written.split(',')) {
    const [, name = '', value = ''] = /^([^=]*)=(.*)$/.exec(pair.trim()) ?? [];
    if (!isTagName(name) || !valuePattern.test(value) || tags.has(name)) throw refuseTags(param);
    tags.set(name, value);
  }
  if (!fits(tags)) throw refuseTags(param);
  return tags;
}

const refuseTags = (param: string): InvalidRequest =>
  new InvalidRequest('invalid_value', param, `Invalid value for '${param}': expected ${wantedTags}.`);

const fits = (tags: ReadonlyMap<string, string>): boolean =>
  tags.size <= tagsMax &&
  [...tags].reduce((sum, [name, value]) => sum + name.length + value.length, 0) <= bytesMax;

const endUserMax = 64;

/**
 * As the client wrote it, in at most 64 characters, which is OpenAI's own limit. Claude Code writes a longer JSON text, whose session
 * is another one each time and stands among the tags: what stays is its account, else its device. Of any other the beginning is
 * kept, not a hash: people read it.
 */
export function showEndUser(written: string): string | undefined {
  const name = written.length > endUserMax ? (stableName(written) ?? written) : written;
  // Control characters are none of a name, and terminals obey them.
  const shown = name
    .slice(0, 2 * endUserMax)
    .toWellFormed()
    .replaceAll(/\p{Cc}/gu, ' ');
  return Array.from(shown).slice(0, endUserMax).join('').trim() || undefined;
}

function stableName(written: string): string | undefined {
  const { account_uuid: account, device_id: device } = asRecord(
    written.length < 1024 ? parseJson(written) : undefined,
  );
  return textIn(account) || textIn(device) || undefined;
}
