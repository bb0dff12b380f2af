/**
 * Serves /v1/account/keys, /v1/account/top-ups and /v1/account/codes, where the holder of a key with `manage` acts for the key's account.
 * Never changes the key that asks, a key of the operator, or one of another account, and never creates a key with more rights than the key
 * that asks: decision 79. One item lists the keys that customers created for an account, and is written together with the keys:
 *
 *     key that asks (as it was read) --condition--+
 *     keys made of the account (as read) --write--+-- one transaction, or nothing
 *     the key that is made or changed    --write--+
 */
import { minuteOf } from '../../billing/reservation.ts';
import { KeyRow, findKeyRefusal } from '../../config/rows/key-row.ts';
import { attributeOf, readRow } from '../../config/rows/read-row.ts';
import { keyHash, keyHint } from '../../wire/ids.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import { hourMs, isoTime } from '../../wire/iso-time.ts';
import { checkBounds, isRecord, parseJson } from '../../wire/json.ts';
import type { ManagedKey } from '../../wire/public-api.ts';
import { admitKey, readKey } from '../call/call-refusals.ts';
import { type Handle, type RelayRequest, secondsOfMinuteLeft } from '../http/http.ts';
import { createLoggedHandle } from '../http/logged-handle.ts';
import { accountKeyIdOf, matchSelfServiceRoute, refuseRoute } from '../http/refuse-route.ts';
import { respondJson, refuse, smallBody, type Refusal } from '../http/refusal.ts';
import { Backoff } from '../retry.ts';
import { counterKeyOf } from '../money/call-costs.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
import type { KeyChange, ManagedKeyStore, SeenKey } from '../ports/managed-keys.ts';
import { StoreBusy, StoreUnavailable } from '../ports/store-errors.ts';
import {
  readAllowedKey,
  checkNames,
  readKeyFields,
  fieldsOf,
  refuseField,
  type KeyFields,
  keyIdOf,
  describeKey,
} from './made-key.ts';
import { codesPerMinute, redeemCode, type CodePorts } from './redeem-code.ts';
import { topUp, showTopUps, describeTopUpOffer, type KeyRequest, type TopUpPorts } from './top-up.ts';

interface ManagedKeysPorts
  extends TopUpPorts, Omit<CodePorts, 'random'>, Pick<ChatPorts, 'keys' | 'counters'> {
  managed: ManagedKeyStore;
}

/** Bounds the keys of one account, whoever created them. */
const keysMax = 20;
const writesPerMinute = 60;
const bodyBytesMax = 16 * 1024;
const bodyBounds = { levelsMax: 8, valuesMax: 2_000 };
/** For which writes that come in each other's way are repeated. */
const budgetMs = 8_000;

type Work = (ports: ManagedKeysPorts, caller: KeyRequest) => Promise<{ status?: number; answer: object }>;

const works: Readonly<Record<NonNullable<ReturnType<typeof matchSelfServiceRoute>>, Work>> = {
  account_keys: list,
  account_key_create: create,
  account_key_edit: edit,
  account_key_rotate: rotate,
  account_key_delete: remove,
  top_ups: async (ports, caller) => {
    await askerOf(ports, caller);
    return { answer: await topUp(ports, caller) };
  },
  top_ups_state: async (ports, caller) => {
    await askerOf(ports, caller);
    return { answer: await showTopUps(ports, caller) };
  },
  code_redeem: async (ports, caller) => ({ answer: await redeemCode(ports, caller) }),
};

export const createManagedKeysHandle = (ports: ManagedKeysPorts): Handle =>
  createLoggedHandle(ports, { endpoint: 'account_keys' }, async (request, found) => {
    const { clock, keys } = ports;
    const route = matchSelfServiceRoute(request);
    if (!route) throw refuseRoute(request);
    const admitted = admitKey(await keys.find(readKey(request.headers)), clock.now());
    found({ endpoint: route, key_hint: admitted.row.hint, account: admitted.row.account });
    // Count guesses at codes by account, because an account may have many keys.
    if (route === 'code_redeem') await countWrite(ports, `codes-${admitted.row.account}`, codesPerMinute);
    else if (request.method !== 'GET')
      await countWrite(ports, `writes-${counterKeyOf(admitted.row)}`, writesPerMinute);
    const body = request.method === 'POST' ? bodyOf(request) : {};
    const { status = 200, answer } = await works[route](ports, { admitted, request, body });
    return { ...respondJson(request.id, answer), status };
  });

async function countWrite(ports: ManagedKeysPorts, counter: string, most: number): Promise<void> {
  const nowMs = ports.clock.now();
  const count = await new Backoff(ports, budgetMs).until(() =>
    ports.counters.countCall(counter, minuteOf(nowMs), most),
  );
  if (count !== undefined) return;
  const words = `An account can make at most ${most} changes a minute. Try again in the next minute.`;
  const headers = { 'retry-after': String(secondsOfMinuteLeft(nowMs)) };
  throw refuse('rate_limit_exceeded', words, { headers });
}

function bodyOf(request: RelayRequest): KeyFields {
  const bytes = smallBody(request, bodyBytesMax);
  if (bytes.length === 0) return {};
  const text = new TextDecoder().decode(bytes);
  const json = typeof checkBounds(text, bodyBounds) === 'number' ? parseJson(text) : undefined;
  if (isRecord(json)) return json;
  throw new InvalidRequest('invalid_json', null, 'The body must be a JSON object of a few fields.');
}

/** The key that asks, as its row is now, and the hashes of the keys that customers have made of its account. */
interface Asker {
  own: KeyRow;
  maker: SeenKey;
  made: readonly string[];
}

async function askerOf({ clock, managed }: ManagedKeysPorts, { admitted }: KeyRequest): Promise<Asker> {
  const maker = await managed.find(admitted.row.hash);
  const reading = maker && readRow(KeyRow, maker.raw);
  const isReadable = reading && 'row' in reading;
  const lookup = isReadable ? { ...admitted, row: reading.row } : ({ missing: 'unknown' } as const);
  const { row: own } = admitKey(lookup, clock.now());
  if (!maker || !own.manage)
    throw refuse(
      'key_may_not_manage',
      'This API key may not manage keys. Ask the operator of the relay for a key that can.',
    );
  return { own, maker, made: await managed.made(own.account) };
}

async function list(ports: ManagedKeysPorts, caller: KeyRequest) {
  const { own, maker, made } = await askerOf(ports, caller);
  const rows = await ports.managed.rows(made);
  const others = rows.filter((seen) => isCustomers(seen, own.account) && hashOf(seen) !== own.hash);
  const nowMs = ports.clock.now();
  const [asking, ...shown] = [maker, ...others].map(({ raw }) => describeKey(raw, own, nowMs));
  const newestFirst = shown.toSorted((a, b) => (b.created_at ?? 0) - (a.created_at ?? 0));
  const { settings } = await ports.config.current();
  const top_up = describeTopUpOffer(settings);
  const data = asking ? [asking, ...newestFirst] : [];
  return {
    answer: {
      object: 'list',
      can_manage: true,
      limit: keysMax,
      top_up,
      top_up_bonus: settings.topUpBonus ?? [],
      data,
    },
  };
}

async function create(ports: ManagedKeysPorts, caller: KeyRequest) {
  const answer = await createKey(ports, caller, async ({ own }) => {
    const fields = readKeyFields(caller.body, own, ports.clock.now());
    if (fields['name'] === undefined)
      throw new InvalidRequest('missing_required_parameter', 'name', 'Give the key a name.');
    return { fields: { ...fieldsOf(own), ...fields } };
  });
  return { status: 201, answer };
}

async function edit(ports: ManagedKeysPorts, caller: KeyRequest) {
  const editKey = async (asker: Asker): Promise<ManagedKey> => {
    const { own } = asker;
    const { seen } = await targetOf(ports, asker, accountKeyIdOf(caller.request));
    const nowMs = ports.clock.now();
    const fields = readKeyFields(caller.body, own, nowMs);
    const row = { ...seen.raw, ...fields };
    const written: KeyFields = fieldsOf(readAllowedKey(own, row));
    const changed = Object.fromEntries(Object.keys(fields).map((name) => [name, written[name]]));
    const update = { seen, attributes: { ...changed, ...authorOf(own, nowMs) } };
    if ((await write(ports, asker, { update })).includes('key')) throw refuseChangedKey();
    logKeyChange(ports, own, { action: 'changed', hash: hashOf(seen) });
    return describeKey(row, own, nowMs);
  };
  return { answer: await changeKeys(ports, caller, editKey) };
}

const graceHoursMax = 168;

async function rotate(ports: ManagedKeysPorts, caller: KeyRequest) {
  checkNames(caller.body, ['grace_hours']);
  const { grace_hours: graceHours = 24 } = caller.body;
  if (typeof graceHours !== 'number' || !(graceHours >= 0 && graceHours <= graceHoursMax))
    throw refuseField('grace_hours', `grace_hours must be a number from 0 to ${graceHoursMax}.`);
  const replaces = accountKeyIdOf(caller.request);
  const answer = await createKey(ports, caller, async (asker) => {
    const { seen, row: old } = await targetOf(ports, asker, replaces);
    const nowMs = ports.clock.now();
    if (findKeyRefusal(old, nowMs) !== undefined)
      throw new InvalidRequest('key_not_usable', null, 'This key no longer works: create a new one.');
    // Another successor would end with it, as the first one does not.
    const made = await ports.managed.rows(asker.made);
    if (made.some(({ raw }) => raw['_replaces'] === old.hash))
      throw new InvalidRequest(
        'key_not_usable',
        null,
        'This key was already replaced: rotate its replacement instead.',
      );
    const endMs = Math.min(nowMs + graceHours * hourMs, old.expires_at ?? Infinity);
    return {
      fields: { ...fieldsOf(old), official: old.official || undefined },
      replaced: { seen, expires_at: isoTime(endMs), isOver: graceHours === 0 },
    };
  });
  return { status: 201, answer: { ...answer, replaces } };
}

async function remove(ports: ManagedKeysPorts, caller: KeyRequest) {
  const id = accountKeyIdOf(caller.request);
  const removeKey = async (asker: Asker, isRepeat: boolean): Promise<void> => {
    const { own, made } = asker;
    if (isRepeat && made.every((hash) => keyIdOf(hash) !== id)) return;
    const { seen } = await targetOf(ports, asker, id);
    const refused = await write(ports, asker, {
      made: { before: made, after: made.filter((hash) => hash !== hashOf(seen)) },
      update: { seen, attributes: { enabled: false, ...authorOf(own, ports.clock.now()) } },
    });
    // Refuse the key whatever else was changed.
    if (refused.length > 0) throw new StoreBusy('The key was changed meanwhile.');
    logKeyChange(ports, own, { action: 'revoked', hash: hashOf(seen) });
  };
  await changeKeys(ports, caller, removeKey);
  return { answer: { id, deleted: true } };
}

/**
 * Repeats a change while others come between. Each try reads all that it goes by, so a right that is taken away meanwhile is none.
 * @param tryOnce `isRepeat`: an earlier try may have been applied, or may be yet
 */
async function changeKeys<Result>(
  ports: ManagedKeysPorts,
  caller: KeyRequest,
  tryOnce: (asker: Asker, isRepeat: boolean) => Promise<Result>,
): Promise<Result> {
  const backoff = new Backoff(ports, budgetMs);
  try {
    return await backoff.until(async () => tryOnce(await askerOf(ports, caller), backoff.unknowns > 0));
  } catch (error) {
    if (!(error instanceof StoreUnavailable) || backoff.unknowns === 0) throw error;
    throw refuse(
      'unavailable',
      'The relay does not know whether this change was saved. List the keys, and delete a new key that you did not receive.',
      { headers: { 'retry-after': '2' }, reason: 'store_unavailable' },
    );
  }
}

interface WantedKey {
  fields: KeyFields;
  /** The key whose place it takes, at once or when that ends. */
  replaced?: { seen: SeenKey; expires_at: string; isOver: boolean };
}

/** Makes a key, which is shown this once. */
async function createKey(
  ports: ManagedKeysPorts,
  caller: KeyRequest,
  wanted: (asker: Asker) => Promise<WantedKey>,
): Promise<ManagedKey & { key: string }> {
  const key = ports.random.secretKey();
  const made = await changeKeys(ports, caller, async (asker, isRepeat) => {
    const earlier = isRepeat && (await ports.managed.find(keyHash(key)));
    if (earlier) return describeKey(earlier.raw, asker.own, ports.clock.now());
    return writeKey(ports, asker, { ...(await wanted(asker)), key });
  });
  return { ...made, key };
}

async function writeKey(
  ports: ManagedKeysPorts,
  asker: Asker,
  { key, fields, replaced }: WantedKey & { key: string },
): Promise<ManagedKey> {
  const { own, made } = asker;
  const { account } = own;
  const [hash, nowMs] = [keyHash(key), ports.clock.now()];
  const identity = { account, hash, hint: keyHint(key), enabled: true, made_by: own.hash };
  const asked: KeyFields = { ...fields, ...identity };
  const marks = authorOf(own, nowMs);
  const row = {
    ...asked,
    ...fieldsOf(readAllowedKey(own, asked)),
    _created: isoTime(nowMs),
    ...(replaced && { _replaces: hashOf(replaced.seen) }),
    ...marks,
  };
  const left = made.filter((each) => !(replaced?.isOver && each === hashOf(replaced.seen)));
  const kept = left.length < keysMax ? left : await findUsableKeys(ports, account, left);
  if (kept.length >= keysMax)
    throw refuse(
      'too_many_keys',
      `Customers can create at most ${keysMax} keys in an account. Delete one${replaced ? ', or rotate with "grace_hours": 0' : ''}.`,
    );
  const refused = await write(ports, asker, {
    made: { before: made, after: [...kept, hash] },
    create: row,
    ...(replaced && {
      update: { seen: replaced.seen, attributes: { expires_at: replaced.expires_at, ...marks } },
    }),
  });
  if (refused.includes('key')) throw refuseChangedKey();
  logKeyChange(ports, own, { action: replaced ? 'rotated' : 'made', hash });
  return describeKey(row, own, nowMs);
}

/** Without those that are gone, that the operator took over, or whose end is over. */
async function findUsableKeys(
  { managed, clock }: ManagedKeysPorts,
  account: string,
  hashes: readonly string[],
) {
  const rows = await managed.rows(hashes);
  const used = rows.filter((seen) => {
    const reading = readRow(KeyRow, seen.raw);
    const { expires_at: endMs = Infinity } = 'row' in reading ? reading.row : {};
    return isCustomers(seen, account) && endMs > clock.now();
  });
  return used.map(hashOf);
}

/** @returns what was changed meanwhile: the key at most. Throws StoreBusy for what another try reads anew. */
async function write(
  { managed }: ManagedKeysPorts,
  { own, maker }: Asker,
  change: Omit<KeyChange, 'account' | 'maker'>,
) {
  const refused = await managed.write({ account: own.account, maker, ...change });
  if (refused.some((what) => what !== 'key'))
    throw new StoreBusy('Another write of the account came between.');
  return refused;
}

/** A key that a customer made of this account, and that is a customer's still. */
async function targetOf({ managed }: ManagedKeysPorts, { own, made }: Asker, id: string) {
  if (id === keyIdOf(own.hash)) throw refuseForeignKey();
  const hash = made.find((each) => keyIdOf(each) === id);
  const seen = hash === undefined ? undefined : await managed.find(hash);
  if (!seen || !isCustomers(seen, own.account))
    throw refuse('key_not_found', 'GET /v1/account/keys lists no key with this id.');
  const reading = readRow(KeyRow, seen.raw);
  if ('problem' in reading || reading.row.manage) throw refuseForeignKey();
  return { seen, row: reading.row };
}

const isCustomers = ({ raw }: SeenKey, account: string): boolean =>
  raw['account'] === account && attributeOf(raw, 'made_by') !== undefined;

const hashOf = ({ raw }: SeenKey): string => String(raw['hash']);

const refuseForeignKey = (): Refusal =>
  refuse('key_not_yours_to_change', 'Only the operator of the relay can change this key.');
const refuseChangedKey = (): Refusal =>
  refuse('key_changed', 'Another request changed this key in the meantime. List the keys again, then retry.');

/** As rows that operators write say it. */
const authorOf = ({ hint }: KeyRow, nowMs: number) => ({ _by: `key ${hint}`, _at: isoTime(nowMs) });

const logKeyChange = (
  { log }: ManagedKeysPorts,
  own: KeyRow,
  { action, hash }: { action: string; hash: string },
): void =>
  log.event('account_key', {
    account: own.account,
    action,
    key: counterKeyOf({ hash }),
    by: counterKeyOf(own),
  });
