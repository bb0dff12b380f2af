/**
 * Decides who may call what: the key in a request's header, whether it is usable, official billing, the whitelist of models,
 * and whether answers may be kept. Must never tell the client why a key is not usable.
 */
import type { KeyLookup } from '../ports/config-store.ts';
import { findKeyRefusal, type KeyRow } from '../../config/rows/key-row.ts';
import type { AliasSettings } from '../../config/settings.ts';
import type { Snapshot } from '../../config/snapshot.ts';
import { bearer, type Endpoint } from '../../endpoints/endpoint.ts';
import { isSecretKey, modelNamePattern } from '../../wire/ids.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import { refuse, type Refusal } from '../http/refusal.ts';
import type { ChatCall, ModelName } from './call.ts';

export type AdmittedKey = Extract<KeyLookup, { row: KeyRow }>;

type Headers = Readonly<Record<string, string | undefined>>;

/** The key that a request holds where its endpoint looks for it. Throws before any lookup when there is no well-formed one. */
export function findKey({ keyHeader = bearer }: Pick<Endpoint, 'keyHeader'>, headers: Headers): string {
  const shown = keyHeader.shown(headers);
  const key = keyHeader.sent(headers);
  if (typeof key === 'object') throw refuseInvalidKey(key.conflict, 'key_conflict');
  if (key === undefined)
    throw refuseInvalidKey(`No API key was sent. Send it as the header "${shown}".`, 'key_missing');
  if (!isSecretKey(key))
    throw refuseInvalidKey(
      `The ${shown.split(':')[0]} header does not hold an API key of this relay. Send "${shown}".`,
      'key_malformed',
    );
  return key;
}

/** The key in an Authorization header. */
export const readKey = (authorization: string | undefined): string => findKey({}, { authorization });

/**
 * The key that a lookup found. Throws when it is not usable: the message is the same for every reason; the
 * log has the reason.
 */
export function admitKey(lookup: KeyLookup, nowMs: number): AdmittedKey {
  if ('missing' in lookup) throw refuseUnusableKey(`key_${lookup.missing}`);
  const reason = findKeyRefusal(lookup.row, nowMs);
  if (reason !== undefined) throw refuseUnusableKey(`key_${reason}`);
  if (lookup.accountOff) throw refuseUnusableKey('key_account_disabled');
  return lookup;
}

/** Finds the alias of a name. */
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
export function admitModel({ key, snapshot }: { key: KeyRow; snapshot: Snapshot }, model: ModelName): void {
  if (model.official && !key.official)
    throw refuse(
      'official_not_allowed',
      'This API key may not use official billing. Drop "official" and the suffix "-official".',
      { param: 'model' },
    );
  if (!isAllowed(key, snapshot, model.base))
    throw refuse('model_not_allowed', `This API key may not use the model "${model.base}".`, {
      param: 'model',
    });
}

const refuseInvalidKey = (message: string, reason: string): Refusal =>
  refuse('invalid_api_key', message, { reason });
const refuseUnusableKey = (reason: string): Refusal =>
  refuseInvalidKey('The API key is not valid. Check that it is complete and active.', reason);

/** Splits a requested model into base name and modifiers. Removes at most one prefix and one suffix. */
export function parseModelName(requested: string, officialFlag: boolean): ModelName {
  const web = requested.startsWith('web-');
  const suffixed = requested.endsWith('-official');
  const base = requested.slice(web ? 'web-'.length : 0, suffixed ? -'-official'.length : undefined);
  if (!modelNamePattern.test(requested) || base === '')
    throw new InvalidRequest(
      'invalid_value',
      'model',
      'model must be 1 to 128 of the characters A-Z a-z 0-9 . _ : / @ - and name a model between its modifiers.',
    );
  return { base, web, official: suffixed || officialFlag };
}

/** Answers may be stored if the key's row says so, or the setting does and the row does not forbid it. */
export const mayStore = ({ key, snapshot }: Pick<ChatCall, 'key' | 'snapshot'>): boolean =>
  key.store ?? snapshot.settings.store.allKeys;
