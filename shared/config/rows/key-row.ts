import * as z from 'zod/mini';
import { isSecretKey } from '../../wire/ids.ts';
import {
  accountName,
  amount,
  flag,
  modelList,
  positiveInteger,
  text,
  time,
  attributeOf,
  readRow,
} from './read-row.ts';
import type { Settings } from '../settings.ts';
import { joinNames, type ValidationResult } from './read-table.ts';

const hashPattern = /^[0-9a-f]{64}$/;

const wantedNoKey =
  'the SHA-256 of the key, but this is the key itself, exposed to everyone who can read the table. Delete this row and create ' +
  'another key with `key new`; if `key check` says that this one works, run `key leaked`';

/** The hash of a row for a list or a message: what stands in its place may be a key, so of that the beginning alone. */
export const maskHash = (hash: string): string =>
  hashPattern.test(hash) ? hash : `${hash.slice(0, Math.min(7, hash.length / 2))}...`;

/** A row of the table `keys`. The key of an invalid row is refused, so that a typo cannot widen access. */
export const KeyRow = z.strictObject({
  /** SHA-256, in hex, of the whole `sk-` key; the key itself is not stored. */
  hash: z.string('the SHA-256 of the key').check(
    z.refine((hash) => !isSecretKey(hash), { error: wantedNoKey, abort: true }),
    z.regex(hashPattern, 'the SHA-256 of the key: 64 of 0-9 a-f'),
  ),
  account: accountName,
  /** For people: whose or what it is. */
  name: z.optional(z.string('a text')),
  /** Only keys with the value `api` are accepted. */
  agent: z._default(text, 'api'),
  /** The models that the key may call. Absent: every model; an empty list: none. */
  models: z.optional(modelList),
  official: z._default(flag, false),
  enabled: z._default(flag, true),
  expires_at: z.optional(time),
  max_concurrency: z.optional(positiveInteger),
  rpm: z.optional(positiveInteger),
  /** The most that the key may spend of the balance, in yuan a calendar day or month of the relay's time zone. */
  budget: z.optional(
    z.strictObject(
      { amount, period: z.enum(['day', 'month'], '"day" or "month"') },
      'a map {amount, period}',
    ),
  ),
  /** Whether its calls may store responses and results. Absent: as the setting `store` says. */
  store: z.optional(flag),
  /** Whether its holder may make, change and end keys of the account that may no more than it. No such key has it itself. */
  manage: z.optional(flag),
  /** Of a key that a customer made: the hash of the key that made it. */
  made_by: z.optional(
    z
      .string('the SHA-256 of the key that made it')
      .check(z.regex(hashPattern, 'the SHA-256 of the key that made it: 64 of 0-9 a-f')),
  ),
  /** The first and last characters of the key, for lists and logs. */
  hint: z._default(z.string('a text'), ''),
});
export type KeyRow = z.infer<typeof KeyRow>;

/** Validates a row of `keys`. The key of a row with a problem is refused. */
export function validateKeyRow(raw: unknown): ValidationResult {
  const reading = readRow(KeyRow, raw);
  if ('problem' in reading) return { problem: `${reading.problem}; until it is fixed, the key is rejected` };
  const { models } = reading.row;
  return models?.length === 0
    ? {
        warning: 'models: empty, so this key cannot call any model (remove the attribute to allow all)',
      }
    : {};
}

/** Why the relay refuses the key of a row; undefined if it accepts the key. `nowMs`: epoch milliseconds. */
export function findKeyRefusal(key: KeyRow, nowMs: number): 'kind' | 'disabled' | 'expired' | undefined {
  if (key.agent !== 'api') return 'kind';
  if (!key.enabled) return 'disabled';
  return key.expires_at !== undefined && key.expires_at <= nowMs ? 'expired' : undefined;
}

// Warnings of keys that depend on other tables. Such a key is still used.

/** What is known beside a key. Undefined: it was not looked at. */
export interface KeyContext {
  /** The names that calls may ask for. */
  offered?: ReadonlySet<string> | undefined;
  accounts?: ReadonlySet<string> | undefined;
}

/** Aliases too: a key may name one. */
export const listOfferedNames = ({
  models,
  settings,
}: {
  models: readonly string[];
  settings: Pick<Settings, 'aliases'>;
}): Set<string> => new Set([...models, ...settings.aliases.map(({ name }) => name)]);

/** `raw`: a row without a problem. In the past tense, as a mark stays until the row is written again. */
export function findKeyWarnings(raw: unknown, { offered, accounts }: KeyContext): string[] {
  const account = attributeOf(raw, 'account');
  const unserved = offered ? listKeyModels(raw).filter((name) => !offered.has(name)) : [];
  return [
    ...(accounts && typeof account === 'string' && !accounts.has(account)
      ? ['account: had no row at the last check, so the key has no plan and no account limits']
      : []),
    ...(unserved.length > 0
      ? [`models: no enabled channel served ${joinNames(unserved)} at the last check`]
      : []),
  ];
}

/** The models of a key, as a list or a set. */
export function listKeyModels(raw: unknown): string[] {
  const models = attributeOf(raw, 'models');
  const names = models instanceof Set || Array.isArray(models) ? [...(models as Iterable<unknown>)] : [];
  return names.filter((name) => typeof name === 'string');
}
