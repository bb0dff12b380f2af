/**
 * The names by which clients tell end users and caches apart go up bound to the account. Vendors see one organisation
 * behind a channel, whoever calls: under a name as the client wrote it, one account would be served from another's cache,
 * and could have the vendor block another's users. Echoes show the client's own name.
 */
import { isRecord, type JsonRecord } from '../../wire/json-record.ts';
import type { ChatCall } from '../call/chat-call.ts';
import type { Pseudonym } from '../ports/pseudonym.ts';

/** OpenAI's names, and beside them those of DeepSeek and Z.ai, and of OpenRouter. */
const names = ['user', 'safety_identifier', 'prompt_cache_key', 'user_id', 'session_id'];

/** The call as upstreams get it. */
export function pseudonymous(call: ChatCall, pseudonym: Pseudonym): ChatCall {
  const { key, request, unknown } = call;
  const told = (name: unknown): unknown =>
    name === undefined || name === null || name === ''
      ? name
      : pseudonym(key.account, typeof name === 'string' ? name : JSON.stringify(name));
  return { ...call, request: bound(request, told), unknown: bound(unknown, told) };
}

function bound<Fields extends JsonRecord>(fields: Fields, told: (name: unknown) => unknown): Fields {
  const { metadata } = fields;
  const named = names.filter((field) => Object.hasOwn(fields, field));
  const inMetadata = isRecord(metadata) && Object.hasOwn(metadata, 'user_id');
  if (named.length === 0 && !inMetadata) return fields;
  return {
    ...fields,
    ...Object.fromEntries(named.map((field) => [field, told(fields[field])])),
    ...(inMetadata && { metadata: { ...metadata, user_id: told(metadata['user_id']) } }),
  };
}
