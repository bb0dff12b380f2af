import type { OpenEntry, QuotaItem } from '../../shared/billing/quota-item.ts';
import { budgetDay, planMonth } from '../oracle/plan-month.ts';
import { inputTokensLeast, type CallAsked } from '../oracle/endings.ts';
import { factorOf, priceOf } from '../oracle/price-list.ts';
import { aliasName, planEntries, priceList, type Customer } from './accounts.ts';
import type { Change } from './stored-quotas.ts';
import { hold } from './watch.ts';

/** Clocks differ by this much: a lease may have expired by one and not by the other. */
const skewSeconds = 16;

/** Half of the calls between the read and the write of a split (docs/billing.md). */
const admittedWhileSplit = 3;

/** Checks the limits of accounts and keys at every reserve, by their rows. */
export class LimitsWatch {
  readonly #customers = new Map<string, Customer>();
  /** Calls and tokens by account or key, and minute. */
  readonly #minutes = new Map<string, number>();

  constructor(customers: readonly Customer[]) {
    for (const customer of customers) this.#customers.set(customer.account.account, customer);
  }

  readonly #reserved = new Set<string>();

  /** Splits by account. */
  readonly #splits = new Map<string, number>();

  /** Tokens in the latest minute of an account. */
  readonly #tokens = new Map<string, { minute: number; tokens: number }>();

  closed(account: string, outputTokens: number): void {
    const latest = this.#tokens.get(account);
    if (latest) latest.tokens += outputTokens;
  }

  moved({ account, move }: Change): void {
    if ((move?.shardCount ?? 1) > 1) this.#splits.set(account, (this.#splits.get(account) ?? 0) + 1);
  }

  reserved({ account, parts, reserve }: Change, asked: CallAsked, nowMs: number): void {
    const customer = this.#customers.get(account);
    if (!customer || !reserve) return;
    const { id, entry, slot, rate } = reserve;
    // Calls from before a split count where they started (docs/billing.md).
    const times = 1 + (this.#splits.get(account) ?? 0);
    const key = customer.keys.find(({ hash }) => hash.startsWith(asked.key));
    const open = parts.flatMap((item) => openIn(item, nowMs / 1000 + skewSeconds));
    const hasPlace = open.filter(([, { key: ofKey }]) => ofKey === asked.key);
    const is = (what: string, found: number, most = Infinity): void =>
      hold(found <= most, `${id} is number ${found} of ${most} ${what}`);
    is(`running calls of the key ${asked.key}`, hasPlace.length, (key?.max_concurrency ?? Infinity) * times);
    is(`running calls of ${account}`, open.length, (customer.account.concurrency ?? Infinity) * times);
    // A late retry reserves for a call that was already released: the same call, counted once before all its attempts.
    const isLate = this.#reserved.has(id);
    this.#reserved.add(id);
    const minute = Math.floor(asked.startedMs / 60_000);
    if (!isLate)
      is(`calls of the key ${asked.key} in a minute`, this.#count(`${asked.key} ${minute}`), key?.rpm);
    const more = times > 1 ? admittedWhileSplit : 0;
    const rpm = (customer.account.rpm ?? Infinity) + more;
    if (rate) is(`calls of ${account} in a minute`, this.#count(`${account} ${rate.minute}`), rpm);
    if (rate && times === 1)
      this.#countTokens({ id, minute: rate.minute, asked, most: customer.account.tpm });
    const ofKey = entry.budget?.split(' ').find((name) => !name.includes('@'));
    hold(
      (ofKey !== undefined) === (key?.budget !== undefined && entry.amount > 0n),
      `${id} counts on the budget of its key, ${key?.budget ? 'and' : 'but'} that has ${key?.budget ? 'one' : 'none'}`,
    );
    hold(
      ofKey === undefined || ofKey === budgetDay(asked.startedMs),
      `${id} counts on the budget of ${ofKey}`,
    );
    if (slot) this.#slot(customer, asked, { id, key: slot.key, parts });
  }

  #count(name: string): number {
    const count = (this.#minutes.get(name) ?? 0) + 1;
    this.#minutes.set(name, count);
    return count;
  }

  /** Input counts when a call begins, as far as it is known, and output when the call ends. */
  #countTokens(at: { id: string; minute: number; asked: CallAsked; most: number | undefined }): void {
    const { id, minute, asked, most = Infinity } = at;
    const latest = this.#tokens.get(asked.account);
    const tokens = latest && latest.minute >= minute ? latest.tokens : 0;
    hold(tokens < most, `${id} begins after ${tokens} tokens of ${most} in a minute`);
    this.#tokens.set(asked.account, { minute, tokens: tokens + inputTokensLeast(asked) });
  }

  #slot(
    { since }: Customer,
    { model, others, prices, startedMs, tier }: CallAsked,
    { id, key, parts }: { id: string; key: string; parts: readonly QuotaItem[] },
  ): void {
    const [name, month] = key.split('@');
    const entries = [...planEntries.values()].flat();
    // An entry covers any model that may answer, or the alias by its name.
    const priced = [model, ...(others ?? [])].filter((one) => one !== 'free');
    const covers = ({ models }: { models: string[] }): boolean =>
      (others !== undefined && models.includes(aliasName)) || priced.every((one) => models.includes(one));
    const fits = entries.filter((entry) => entry.id === name && covers(entry));
    hold(fits.length > 0, `${id} calls ${priced.join(' or ')} on the plan entry ${name}`);
    hold(month === planMonth(since, startedMs), `${id} counts on ${key}`);
    const dearer = priced.filter(
      (one) => (factorOf(priceOf(priceList, one, { startedMs, prices }), tier) ?? 1) > 1,
    );
    hold(dearer.length === 0, `${id} is on ${key} in the dearer service tier ${tier}`);
    const most = Math.max(...fits.map(({ value }) => (value < 0 ? Infinity : value)));
    const calls = parts.reduce((sum, { plan }) => sum + (plan.get(key) ?? 0), 0);
    hold(calls <= most, `${id} is call ${calls} of ${most} on ${key}`);
  }
}

/** The calls that are certainly running. */
const openIn = ({ open }: QuotaItem, nowSeconds: number): [string, OpenEntry][] =>
  [...open].filter(([, { tombstone, until }]) => !tombstone && until > nowSeconds);
