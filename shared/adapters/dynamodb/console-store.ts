/**
 * Stores sessions and history of the hosted console in `runtime`. Never deletes: finished items are marked and expire, lines
 * of the history stay. Cookies and one-time texts are stored as hashes.
 */
import { hash } from 'node:crypto';
import { gunzipSync, gzipSync } from 'node:zlib';
import { historyMax, watchesMax, type ConsoleStore } from '../../operate/hosted-console.ts';
import { Failure } from '../../operate/plan.ts';
import type { Clock } from '../../relay/ports/host.ts';
import { isoTime } from '../../wire/iso-time.ts';
import { readItems, type RuntimeItem } from './runtime-items.ts';
import { buildExpressions, Table, type TableClient } from './table-client.ts';

const idleSeconds = 30 * 60;
const sessionSeconds = 8 * 3600;
/** Use alone updates an item at most this often. */
const touchSeconds = 60;
const keptSeconds = 30 * 60;
const onceSeconds = 3600;
const daySeconds = 2 * 86_400;
const watchSeconds = 5 * 60;
/** Below DynamoDB's 400 KB for an item. */
const keptBytesMax = 350_000;
const lineCharactersMax = 500;
const linesMax = 20;

interface ConsoleStoreDeps {
  tables: TableClient;
  stack: string;
  clock: Clock;
  hex: (bytes: number) => string;
}

export function createConsoleStore({ tables, stack, clock, hex }: ConsoleStoreDeps): ConsoleStore {
  const runtime = new Table(tables, stack, 'runtime');
  const readSeconds = (): number => Math.floor(clock.now() / 1000);
  const isNew = buildExpressions({ ConditionExpression: 'attribute_not_exists(#id)' });
  const updateItem = (id: string, update: Record<'set' | 'where', string>, values: object) =>
    runtime.update(
      { id },
      buildExpressions({ UpdateExpression: `SET ${update.set}`, ConditionExpression: update.where }, values),
    );

  /** Adds to a sum unless it would exceed the limit. The amount alone must not exceed it. */
  const addWithin = async (
    id: string,
    sum: 'refunded' | 'watches',
    { amount, limit, seconds }: { amount: bigint; limit: bigint; seconds: number },
  ): Promise<boolean> => {
    const set = `#${sum} = if_not_exists(#${sum}, :zero) + :amount, #expires = :expires`;
    const where = `attribute_not_exists(#${sum}) OR #${sum} <= :room`;
    const values = {
      ':zero': 0,
      ':amount': amount,
      ':room': limit - amount,
      ':expires': readSeconds() + seconds,
    };
    return (await updateItem(id, { set, where }, values)).done;
  };

  const readItem = async (id: string): Promise<RuntimeItem> => (await readItems(runtime, [id])).get(id) ?? {};

  return {
    async beginSession({ name, groups }) {
      const person = hashPerson(name);
      const cookie = `${person}.${hex(32)}`;
      const revoked = await readItems(runtime, listRevocationIds(person));
      await runtime.put({
        id: buildSessionId(cookie),
        name,
        groups: [...groups],
        form_token: hex(32),
        revocation: readRevocation(revoked, person),
        until: readSeconds() + sessionSeconds,
        expires: readSeconds() + idleSeconds,
      });
      return cookie;
    },
    async session(cookie) {
      if (!cookiePattern.test(cookie)) return undefined;
      const person = cookie.slice(0, cookie.indexOf('.'));
      const id = buildSessionId(cookie);
      const items = await readItems(runtime, [id, ...listRevocationIds(person)]);
      const { name, groups, form_token: formToken, ended, expires, until, revocation } = items.get(id) ?? {};
      const isOver = Boolean(ended) || !(Number(expires) > readSeconds());
      if (isOver || revocation !== readRevocation(items, person)) return undefined;
      const renewed = Math.min(readSeconds() + idleSeconds, Number(until));
      if (renewed - Number(expires) > touchSeconds) {
        const where = 'attribute_exists(#id) AND attribute_not_exists(#ended)';
        const { done } = await updateItem(id, { set: '#expires = :expires', where }, { ':expires': renewed });
        if (!done) return undefined;
      }
      return { name: String(name), groups: groups as string[], formToken: String(formToken) };
    },
    async endSession(cookie) {
      const where = 'attribute_exists(#id)';
      await updateItem(
        buildSessionId(cookie),
        { set: '#ended = :ended', where },
        { ':ended': readSeconds() },
      );
    },
    async revoke(name) {
      const [id = ''] = listRevocationIds(name === 'all' ? name : hashPerson(name));
      await runtime.put({ id, name, mark: hex(16), at: isoTime(clock.now()) });
    },
    async isFirst(text) {
      const item = { id: `console-once#${hash('sha256', text)}`, expires: readSeconds() + onceSeconds };
      return (await runtime.put(item, isNew)).done;
    },

    async keep({ owner, text }) {
      const body = gzipSync(text);
      if (body.length > keptBytesMax) throw new Failure('this is too much for one step: split it into parts');
      const id = hex(16);
      await runtime.put({ id: buildKeptId(id), owner, body, expires: readSeconds() + keptSeconds });
      return id;
    },
    async read(owner, id) {
      const { owner: own, body, taken, expires } = await readItem(buildKeptId(id));
      const isOver = own !== owner || Boolean(taken) || !(Number(expires) > readSeconds());
      return isOver || !(body instanceof Uint8Array) ? undefined : gunzipSync(body).toString();
    },
    async take(owner, id) {
      const where = '#owner = :owner AND #expires > :now AND attribute_not_exists(#taken)';
      return (
        await updateItem(
          buildKeptId(id),
          // Remove the form: it may contain contact data, and items outlive their expiry by days.
          { set: '#taken = :now REMOVE #body', where },
          { ':owner': owner, ':now': readSeconds() },
        )
      ).done;
    },

    async countRefund(name, amount, limit) {
      if (amount > limit) return false;
      const id = `console-refunds#${isoTime(clock.now()).slice(0, 10)}#${hashPerson(name)}`;
      return addWithin(id, 'refunded', { amount, limit, seconds: daySeconds });
    },

    async countWatch(name) {
      const id = `console-count#watch#${Math.floor(readSeconds() / watchSeconds)}#${hashPerson(name)}`;
      return addWithin(id, 'watches', { amount: 1n, limit: BigInt(watchesMax), seconds: 2 * watchSeconds });
    },

    async append({ effect, ...line }) {
      const at = isoTime(clock.now());
      const day = at.slice(0, 10);
      const counted = await tables.call('UpdateItem', {
        ...runtime.keyInput({ id: buildCountId(day) }),
        ...buildExpressions({ UpdateExpression: 'ADD #lines :one' }, { ':one': 1 }),
        ReturnValues: 'UPDATED_NEW',
      });
      const number = Number(counted.Attributes?.['lines']?.N);
      const id = buildLineId(day, number);
      await runtime.put({ id, number, at, ...line, effect: shortenTexts(effect) }, isNew);
      return async (result) => {
        await runtime.put(
          { id: buildEndId(id), at: isoTime(clock.now()), result: shortenTexts(result) },
          isNew,
        );
      };
    },
    async history(day, before = Infinity) {
      const { lines = 0 } = await readItem(buildCountId(day));
      const last = Math.min(Number(lines), before - 1);
      const numbers = Array.from(
        { length: Math.max(0, Math.min(historyMax, last)) },
        (_, back) => last - back,
      );
      const ids = numbers.map((number) => buildLineId(day, number));
      const items = await readItems(runtime, [...ids, ...ids.map(buildEndId)]);
      return numbers.map((number) => {
        const id = buildLineId(day, number);
        const { id: _, ...line } = items.get(id) ?? {};
        return Object.assign(line, { number }, resultOf(items.get(buildEndId(id))));
      });
    },
  };
}

const cookiePattern = /^[0-9a-f]{16}\.[0-9a-f]{64}$/;

const hashPerson = (name: string): string => hash('sha256', name.toLowerCase()).slice(0, 16);
const buildSessionId = (cookie: string): string => `console-session#${hash('sha256', cookie)}`;
const buildKeptId = (id: string): string => `console-kept#${id}`;
const buildCountId = (day: string): string => `console-count#${day}`;
const buildLineId = (day: string, number: number): string => `console-history#${day}#${number}`;
const buildEndId = (line: string): string => `${line}#end`;

/** Ends a person's sessions by changed marks: times of two clocks would be less exact. */
const listRevocationIds = (person: string): string[] =>
  [person, 'all'].map((each) => `console-revoked#${each}`);

const readRevocation = (items: ReadonlyMap<string, RuntimeItem>, person: string): string =>
  listRevocationIds(person)
    .map((id) => (items.get(id)?.['mark'] ?? '') as string)
    .join('.');

const resultOf = (end: RuntimeItem | undefined) => (end ? { result: end['result'] as string[] } : {});

const shortenTexts = (texts: readonly string[]): string[] => [
  ...texts.slice(0, linesMax).map((text) => text.slice(0, lineCharactersMax)),
  ...(texts.length > linesMax ? [`and ${texts.length - linesMax} more`] : []),
];
