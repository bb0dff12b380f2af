/**
 * Money first, then work: refuses callers who can't pay before the relay does costly work for them, and limits that work
 * (`WorkBudget`). For an unknown caller the relay reads at most a small body; for one who was refused a moment ago, none. Must never
 * refuse a call that a free model, a plan, official mode or a stored answer would serve.
 */
import { computeHighestCost, type Price } from '../../billing/price.ts';
import { listPlanSlots } from '../../billing/reservation.ts';
import { listCallerPrices } from '../../config/customer-prices.ts';
import { needsPrice } from '../../config/snapshot.ts';
import type { ChatCall } from '../call/call.ts';
import { smallSize } from '../http/http.ts';
import { refuse, Refusal } from '../http/refusal.ts';
import { buildRequest, counterKeyOf, hasLimits, planQuery, type Payer } from './call-costs.ts';
import type { Inflate } from '../ports/host.ts';
import type { ReservationRequest } from './open-reservation.ts';
import type { Reservations } from './reservations.ts';

/** The caller, before the call is known. */
export interface Asking extends Payer, Pick<ChatCall, 'signal'> {
  requestId: string;
  /** It may repeat a request whose answer is kept, and which is answered whatever the account has now. */
  mayRepeat: boolean;
}

/** The models and the mode that the body asks for, as far as it names them. */
export interface Wanted {
  /** Base names: one of them answers. */
  models: readonly string[];
  /** They are those of an alias, which a plan may cover under its own name. */
  isAlias: boolean;
  official: boolean;
}

/** The most large bodies of one key that wait in a process. Reading one takes about 20 ms per megabyte. */
const waitingMax = 64;

export class Admission {
  readonly #reservations: Reservations;
  /** By key, while one of its large bodies is read: those that wait, in order. */
  readonly #queues = new Map<string, (() => void)[]>();

  constructor(reservations: Reservations) {
    this.#reservations = reservations;
  }

  /** Refuses a call by cached facts, without a store read. `wanted` is missing until the body has been read. */
  async glance(asking: Asking, wanted?: Wanted): Promise<Refusal | undefined> {
    const { key, mayRepeat } = asking;
    if (mayRepeat || !this.#reservations.mayRefuse(key.account, counterKeyOf(key))) return undefined;
    const request = buildLeastRequest(asking, wanted);
    return request && this.#reservations.repeatRefusal(request);
  }

  /**
   * Resolves when a large body may be unpacked and parsed: its account may pay, and no other one of its key is. Returns what ends
   * that. Throws a Refusal, or StoreUnavailable.
   */
  async admitLargeBody(asking: Asking): Promise<() => void> {
    await this.#proveLarge(asking);
    return this.#turn(asking);
  }

  /** Throws the Refusal of a call that its account can't pay, before costly work is done for it. */
  async prove(call: ChatCall): Promise<void> {
    const { alias, model, identity } = call;
    const models = alias?.models.map((one) => one.model) ?? [model.base];
    const asking = { ...call, requestId: identity.requestId, mayRepeat: false };
    const wanted = { models, isAlias: alias !== undefined, official: model.official };
    const request = buildLeastRequest(asking, wanted);
    if (request) await this.#reservations.prove(request);
  }

  async #proveLarge(asking: Asking): Promise<void> {
    const models = modelsOf(asking);
    const priced = models.filter((model) => !isFree(asking, model));
    // Every model of the key is free, so the balance doesn't matter.
    if (priced.length === 0 && models.length > 0) return;
    const mayBeServed = asking.mayRepeat || asking.key.official || priced.length < models.length;
    const paid = buildLeastRequest(asking, { models: priced, isAlias: true, official: false });
    if (!paid) return;
    if (!mayBeServed) return this.#reservations.prove(paid);
    const again = await this.#reservations.repeatRefusal(paid);
    if (again) throw isForMoney(again) ? refuseUnpaidBody() : again;
    // The body says whether it is one of those. The refusal is remembered for a second.
    await this.#reservations.prove(paid).catch((error: unknown) => {
      if (!isForMoney(error)) throw error;
    });
  }

  async #turn({ key, signal }: Asking): Promise<() => void> {
    const name = counterKeyOf(key);
    const waiting = this.#queues.get(name);
    const release = (): void => {
      const next = this.#queues.get(name)?.shift();
      if (next) next();
      else this.#queues.delete(name);
    };
    if (!waiting) {
      this.#queues.set(name, []);
      return release;
    }
    if (waiting.length >= waitingMax) throw refuseQueuedBody();
    await new Promise<void>((resolve, reject) => {
      const leave = (): void => {
        const at = waiting.indexOf(begin);
        if (at >= 0) waiting.splice(at, 1);
        reject(refuseUnreadBody());
      };
      const begin = (): void => {
        signal.removeEventListener('abort', leave);
        resolve();
      };
      waiting.push(begin);
      signal.addEventListener('abort', leave, { once: true });
    });
    return release;
  }
}

/**
 * The smallest reservation among the calls that the caller may mean; nothing for a free call without limits.
 * @param wanted undefined: whatever the key may call
 */
function buildLeastRequest(asking: Asking, wanted?: Wanted): ReservationRequest | undefined {
  const { key } = asking;
  const models = wanted?.models ?? modelsOf(asking);
  const free = models.filter((model) => isFree(asking, model));
  // Any of several wanted models may answer, so all must be free; if the model is unknown, one is enough.
  const mayBeFree = wanted ? free.length === models.length : free.length > 0;
  if (mayBeFree && !hasLimits(asking)) return undefined;
  const model = wanted && !wanted.isAlias ? models[0] : undefined;
  const official = wanted?.official ?? key.official;
  return buildRequest(asking, {
    need: {
      id: asking.requestId,
      price: leastPrice,
      slots: listPlanSlots({ ...planQuery(asking), model }),
      estimate: nothing,
      reservesNothing: mayBeFree || official,
    },
    entry: { input: 0n, model: model ?? '', price: '', official },
    isLeast: true,
  });
}

/** A billionth of a yuan. */
const leastPrice: Price = { type: 'times-billing', rule: 0, perCall: 1_000n };
const nothing = {
  inputTokens: 0,
  inputTokensMax: 0,
  n: 1,
  outputTokensMax: 0,
  outputTokensLeast: 0,
  reservesFully: true,
};

/** The models that a key may call, under their own names. */
function modelsOf({ key, snapshot }: Asking): string[] {
  const { models, charges, settings } = snapshot;
  const aliases = settings.aliases.filter(({ name }) => key.models?.includes(name));
  const named = key.models && new Set([...key.models, ...aliases.flatMap((alias) => alias.models)]);
  const isServed = (model: string): boolean =>
    !needsPrice(snapshot, model) || charges.some((rule) => rule.models.includes(model));
  return models.filter((model) => named?.has(model) !== false && isServed(model));
}

const muchTokens = 1_000_000_000;
/** True if the model is free at some hour. The reserve then decides by the clock. */
const isFree = ({ snapshot, account, startedMs }: Asking, model: string): boolean =>
  listCallerPrices(snapshot, account, model, startedMs).some(
    (price) => computeHighestCost(price, muchTokens, muchTokens) === 0n,
  );

const isForMoney = (error: unknown): boolean =>
  error instanceof Refusal && /^(insufficient_quota|balance_reserved)$/.test(error.body.error.code);

const again = { 'retry-after': '1' };
const size = `${smallSize.bytes} bytes or ${smallSize.values} values`;

const refuseUnpaidBody = (): Refusal =>
  refuse(
    'rate_limit_exceeded',
    `The balance did not cover a recent request, so bodies of more than ${size} are not read now. Please try again in 1s.`,
    { headers: again, reason: 'limit_unpaid_bodies' },
  );

const refuseQueuedBody = (): Refusal =>
  refuse(
    'rate_limit_exceeded',
    `${waitingMax} requests of this API key with bodies of more than ${size} are already waiting. Please try again in 1s.`,
    { headers: again, reason: 'limit_large_bodies' },
  );

const refuseUnreadBody = (): Refusal =>
  refuse('unavailable', 'The request ran out of time before its body could be read; try again.', {
    headers: again,
    reason: 'body_out_of_time',
  });

/**
 * Limits the work of one request before it goes upstream. A unit is the time to unpack and parse one byte of a
 * body, about 10 ns of processor, so the whole budget is 1.3 s: decision 90 has the measurements.
 */
const workMost = 128 * 1024 * 1024;
/** Units of work for one of each. */
const costs = { value: 250, seal: 10_000, storedCharacter: 2, inflatedByte: 3 };

export class WorkBudget {
  #left = workMost;

  /** Throws a Refusal. `length`: in bytes, unpacked. */
  readBody(length: number, values: number): void {
    this.#require(length + values * costs.value, 'the body');
  }

  /** False if too little work is left for this seal. `length`: of its text; a seal that does not open costs as much as an empty one. */
  openState(length: number): boolean {
    return this.#draw(costs.seal + length);
  }

  /** Throws a Refusal. `length`: in UTF-16 code units. */
  readStored(length: number): void {
    this.#require(length * costs.storedCharacter, 'stored responses');
  }

  /** Returns an `inflate` that throws a Refusal once the work is used up. */
  limitInflate(inflate: Inflate): Inflate {
    return (bytes, lengthMax) => {
      const text = inflate(bytes, lengthMax);
      this.#require((text?.length ?? lengthMax) * costs.inflatedByte, 'files');
      return text;
    };
  }

  #require(units: number, what: string): void {
    if (this.#draw(units)) return;
    throw refuse(
      'too_much_work',
      `The request is too expensive to process: reading ${what} takes ${units} units of work, but only ${this.#left} of ${workMost} are left. Send fewer values, stored responses, encrypted items or files.`,
    );
  }

  /** Draws nothing and returns false if too little is left. */
  #draw(units: number): boolean {
    if (units > this.#left) return false;
    this.#left -= units;
    return true;
  }
}
