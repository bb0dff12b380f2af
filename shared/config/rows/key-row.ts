/** The schema of a row of `keys`, why a key is refused, and warnings about keys. */
import * as z from 'zod/mini';
import { isSecretKey } from '../../wire/ids.ts';
import {
  accountName,
  flag,
  modelList,
  periodShape,
  positiveInteger,
  text,
  time,
  attributeOf,
  findPaddedNames,
  readRow,
} from './read-row.ts';
import type { Settings } from '../settings.ts';
import { joinNames, warnOf, type ValidationResult } from './read-table.ts';
import { listTexts } from '../../wire/json.ts';

const hashPattern = /^[0-9a-f]{64}$/;

const wantedNoKey =
  'the SHA-256 of the key, but this is the key itself, exposed to everyone who can read the table. Delete this row and create ' +
  'another key with `key new`; if `key check` says that this one works, run `key leaked`';

/** Someone may have typed the key instead of its hash, so only the beginning of anything else is shown. */
export const maskHash = (hash: string): string =>
  hashPattern.test(hash) ? hash : `${hash.slice(0, Math.min(7, hash.length / 2))}...`;

/** The key of an invalid row is refused, so that a typo cannot widen access. */
export const KeyRow = z.strictObject({
  /** The key itself is not stored. */
  hash: z.string('the SHA-256 of the key').check(
    z.refine((hash) => !isSecretKey(hash), { error: wantedNoKey, abort: true }),
    z.regex(hashPattern, 'the SHA-256 of the key: 64 of 0-9 a-f'),
  ),
  account: accountName,
  name: z.optional(z.string('a text')),
  /** Only keys with the value `api` are accepted. */
  agent: z._default(text, 'api'),
  /** Without this list, the key may call every model. */
  models: z.optional(modelList),
  official: z._default(flag, false),
  enabled: z._default(flag, true),
  expires_at: z.optional(time),
  max_concurrency: z.optional(positiveInteger),
  rpm: z.optional(positiveInteger),
  /** In yuan a calendar day or month of the relay's time zone. */
  budget: z.optional(z.strictObject(periodShape, 'a map {amount, period}')),
  /** Calls may store responses. The setting `store` is the default. */
  store: z.optional(flag),
  /** The holder may create, change and delete keys of the account that have no more rights, but not this one. */
  manage: z.optional(flag),
  /** The hash of the key with which a customer made this one. */
  made_by: z.optional(
    z
      .string('the SHA-256 of the key that made it')
      .check(z.regex(hashPattern, 'the SHA-256 of the key that made it: 64 of 0-9 a-f')),
  ),
  /** The first and last characters of the key, for lists and logs. */
  hint: z._default(z.string('a text'), ''),
});
export type KeyRow = z.infer<typeof KeyRow>;

export function validateKeyRow(raw: unknown): ValidationResult {
  const reading = readRow(KeyRow, raw);
  if ('problem' in reading) return { problem: `${reading.problem}; until it is fixed, the key is rejected` };
  const idle =
    reading.row.models?.length === 0 &&
    'models: empty, so this key cannot call any model (remove the attribute to allow all)';
  return warnOf(listTexts(idle, ...findPaddedNames(raw)));
}

export function findKeyRefusal(key: KeyRow, nowMs: number): 'kind' | 'disabled' | 'expired' | undefined {
  if (key.agent !== 'api') return 'kind';
  if (!key.enabled) return 'disabled';
  return key.expires_at !== undefined && key.expires_at <= nowMs ? 'expired' : undefined;
}

/** Facts of other tables, as far as they were read. */
export interface KeyContext {
  offered?: ReadonlySet<string> | undefined;
  accounts?: ReadonlySet<string> | undefined;
}

export const listOfferedNames = ({
  models,
  settings,
}: {
  models: readonly string[];
  settings: Pick<Settings, 'aliases'>;
}): Set<string> => new Set([...models, ...settings.aliases.map(({ name }) => name)]);

/** Warns of a valid row in the past tense, because the warning stays until the row is written again. */
export function findKeyWarnings(raw: unknown, { offered, accounts }: KeyContext): string[] {
  const account = attributeOf(raw, 'account');
  const unserved = offered ? listRowModels(raw).filter((name) => !offered.has(name)) : [];
  return listTexts(
    accounts &&
      typeof account === 'string' &&
      !accounts.has(account) &&
      'account: had no row at the last check, so the key has no plan and no account limits',
    unserved.length > 0 && `models: no enabled channel served ${joinNames(unserved)} at the last check`,
  );
}

export function listRowModels(raw: unknown): string[] {
  const models = attributeOf(raw, 'models');
  const names = models instanceof Set || Array.isArray(models) ? [...(models as Iterable<unknown>)] : [];
  return names.filter((name) => typeof name === 'string');
}
