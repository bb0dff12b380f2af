/**
 * Decides who may call what: the key in a request's header, whether it is usable, official billing, the whitelist of models,
 * and whether answers may be kept.
 */
import type { KeyLookup } from '../ports/config-store.ts';
import { findKeyRefusal, type KeyRow } from '../../config/rows/key-row.ts';
import type { AliasSettings } from '../../config/settings.ts';
import type { Snapshot } from '../../config/snapshot.ts';
import { bearer, type Endpoint } from '../../endpoints/endpoint.ts';
import { isSecretKey, modelNamePattern } from '../../wire/ids.ts';
import type { ChatCall, ModelName } from './call.ts';

export type AdmittedKey = Extract<KeyLookup, { row: KeyRow }>;

/** Reasons why a request has no usable key. `shown`: the header that the client should send. */
export type KeyRefusal =
  | { reason: 'key_conflict'; conflict: string }
  | { reason: 'key_missing' | 'key_malformed'; shown: string }
  | { reason: 'key_unusable'; why: string };

/** Why a key may not call a model. */
export type ModelRefusal =
  | { reason: 'official_not_allowed' }
  | { reason: 'model_not_allowed'; model: string };

type Headers = Readonly<Record<string, string | undefined>>;

/** Reads the key from the header that the endpoint uses. Refuses a missing or malformed key, and two that differ. */
export function findKey(
  { keyHeader = bearer }: Pick<Endpoint, 'keyHeader'>,
  headers: Headers,
): string | KeyRefusal {
  const shown = keyHeader.shown(headers);
  const key = keyHeader.sent(headers);
  if (typeof key === 'object') return { reason: 'key_conflict', conflict: key.conflict };
  if (key === undefined) return { reason: 'key_missing', shown };
  if (!isSecretKey(key)) return { reason: 'key_malformed', shown };
  return key;
}

/** Returns the key that the lookup found, or refuses it if it is not usable. */
export function judgeKey(lookup: KeyLookup, nowMs: number): AdmittedKey | KeyRefusal {
  if ('missing' in lookup) return { reason: 'key_unusable', why: `key_${lookup.missing}` };
  const why = findKeyRefusal(lookup.row, nowMs);
  if (why !== undefined) return { reason: 'key_unusable', why: `key_${why}` };
  if (lookup.accountOff) return { reason: 'key_unusable', why: 'key_account_disabled' };
  return lookup;
}

export function aliasOf({ settings, models }: Snapshot, name: string): AliasSettings | undefined {
  const alias = settings.aliases.find((one) => one.name === name);
  return alias && !models.includes(name) ? alias : undefined;
}

/**
 * The models of an alias that a key may use through it: all if its whitelist names the alias, else those that it names
 * itself.
 */
export function listAllowedModels(
  { models: whitelist }: Pick<KeyRow, 'models'>,
  alias: AliasSettings,
): string[] {
  if (whitelist === undefined || whitelist.includes(alias.name)) return alias.models;
  return alias.models.filter((model) => whitelist.includes(model));
}

function isAllowed(key: KeyRow, snapshot: Snapshot, base: string): boolean {
  if (key.models === undefined || key.models.includes(base)) return true;
  const alias = aliasOf(snapshot, base);
  return alias !== undefined && listAllowedModels(key, alias).length > 0;
}

/** Checks the official gate, then the whitelist. */
export function judgeModel(
  { key, snapshot }: { key: KeyRow; snapshot: Snapshot },
  model: ModelName,
): ModelRefusal | undefined {
  if (model.official && !key.official) return { reason: 'official_not_allowed' };
  if (!isAllowed(key, snapshot, model.base)) return { reason: 'model_not_allowed', model: model.base };
  return undefined;
}

/** Splits a requested model into base name and modifiers. Undefined if it is invalid. Removes at most one prefix and one suffix. */
export function parseModelName(named: string, officialFlag: boolean): ModelName | undefined {
  const requested = removeWindow(named);
  const web = requested.startsWith('web-');
  const suffixed = requested.endsWith('-official');
  const base = requested.slice(web ? 'web-'.length : 0, suffixed ? -'-official'.length : undefined);
  if (!modelNamePattern.test(requested) || base === '') return undefined;
  return { base, web, official: suffixed || officialFlag };
}

/** Removes a mark such as `[1m]`, Claude Code's own for a long context, which it may send by mistake [Wei-Shaw/sub2api 4505]. */
export const removeWindow = (name: string): string => name.replace(/\[\d{1,4}[km]\]$/i, '');

/** Answers may be stored if the key's row says so, or the setting does and the row does not forbid it. */
export const mayStore = ({ key, snapshot }: Pick<ChatCall, 'key' | 'snapshot'>): boolean =>
  key.store ?? snapshot.settings.store.allKeys;
