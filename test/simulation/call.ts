import { inflateWithZlib } from '../../shared/adapters/system/node-ports.ts';
import { parseYuan } from '../../shared/billing/money.ts';
import { buildTariff, findServiceTiers } from '../../shared/billing/tariff.ts';
import { listCustomerTerms } from '../../shared/config/customer-prices.ts';
import type { AnswerOutcome } from '../../shared/billing/usage.ts';
import { admitCall, type Bill } from '../../shared/relay/money/bill.ts';
import type { BillableCall } from '../../shared/relay/money/call-costs.ts';
import type { CalledAlias, ServingModel, ChannelLimits } from '../../shared/relay/call/call.ts';
import { computeChannelLimits, callTo } from '../../shared/relay/call/serving-channels.ts';
import { toRefusal } from '../../shared/relay/http/refusal.ts';
import type { CallAsked, Delivered } from '../oracle/endings.ts';
import {
  aliasName,
  budgetsOf,
  callers,
  models,
  pricesOf,
  searchPrice,
  channels,
  dialects,
  snapshot,
  tierNames,
  type Customer,
  type Model,
} from './accounts.ts';
import type { Server } from './server.ts';
import type { SeededRandom } from './seeded-random.ts';
import { texts } from './texts.ts';
import { bodyFor, deliver, limitIn, type AskedUpstream } from './upstream.ts';
import { hold } from './watch.ts';
import { messagesEndpoint } from '../../shared/endpoints/messages/messages-endpoint.ts';
import { resolveTier } from '../../shared/wire/service-tier.ts';

/** The end of one call, as far as its client or its log knows it. */
export interface CallReport {
  id: string;
  account: string;
  /** True if it was rejected, so nobody may be charged for it. */
  refused: boolean;
  /** True if it froze, so its reservation may have expired unnoticed. */
  stoodStill?: boolean;
  /** True if the balance or the budget lowered its limit. */
  limited?: boolean;
  /** The charge in the log line, once the reservations accepted it. */
  charge?: bigint | undefined;
}

export interface CallToMake {
  random: SeededRandom;
  customer: Customer;
  id: string;
  metered: boolean;
  /** The host's own reserve of time: an unfrozen invocation is over by then, including its settle. */
  longestMs: number;
  /** Accepts a call that a run will answer. If absent, the call is answered at once. */
  accepts?: ((accepted: AcceptedCall) => void) | undefined;
}

/** A call whose run reserves for it. */
export interface AcceptedCall {
  call: BillableCall;
  /** The same call as the bill receives it. */
  billed: BillableCall;
  asked: CallAsked;
}

/** Makes one call as a function does, with the real bill. Undefined for a free call that changes nothing. */
export async function makeCall(server: Server, made: CallToMake): Promise<CallReport> {
  const { environment, reservations, oracle, mutation, faults } = server;
  const { random, id } = made;
  const [call, asked] = billableCall(made, environment.now());
  const { account } = asked;
  oracle.asked(id, asked);
  server.call = call;
  const faultsBefore = faults();
  const tariff = tariffOf(call, mutation?.charges?.([...snapshot.charges]));
  const billed = { ...call, tariff };
  let bill: Bill | undefined;
  try {
    const freeAttempts = { count: async () => {} };
    const ports = { clock: environment, inflate: inflateWithZlib, freeAttempts };
    const admitted = await admitCall(reservations, ports, billed, () => Promise.resolve());
    // Simulates that more of the request was read meanwhile.
    if (made.accepts) await admitted.proveWhole({ ...billed });
    else bill = await admitted.reserve(billed);
  } catch (error) {
    await reservations.awaitCancel(id);
    const { status } = toRefusal(error);
    hold(status === 429 || status === 503, `${id} was refused with ${status}: ${String(error)}`);
    hold(
      !made.metered || !/balance|quota/i.test(String(error)),
      `${id} is metered, and refused: ${String(error)}`,
    );
    // An amount of the budget with an unknown outcome stays reserved.
    if (faults() > faultsBefore) server.losesBudget();
    return { id, account, refused: true, stoodStill: environment.stoodStill };
  }
  if (bill) {
    server.opened = true;
    return answer(server, { random, call, asked, bill });
  }
  await environment.sleep(random.integer(0, 3_000));
  made.accepts?.({ call, billed, asked });
  return { id, account, refused: false };
}

interface CallToAnswer {
  random: SeededRandom;
  call: BillableCall;
  asked: CallAsked;
  bill: Bill;
}

/** Answers after the reserve, in any invocation. */
export async function answer(
  { environment, quotas, oracle, mutation }: Pick<Server, 'environment' | 'quotas' | 'oracle' | 'mutation'>,
  { random, call, asked, bill }: CallToAnswer,
): Promise<CallReport> {
  const { account } = asked;
  const id = call.identity.requestId;
  const written =
    !oracle.endings.isFree(asked) ||
    asked.web ||
    call.key.rpm !== undefined ||
    call.key.max_concurrency !== undefined;
  const open = quotas
    .partsOf(account)
    .find((item) => item.open.has(id))
    ?.open.get(id);
  hold(
    environment.stoodStill || !(written || asked.official) || open?.tombstone === false,
    `the upstream hears of ${id}, but nothing is open for it`,
  );
  const answering = random.pick([asked.model, ...(asked.others ?? [])]);
  const sent = askUpstream({ mutation }, callTo(call, answering), bill);
  await environment.sleep(random.integer(0, Math.max(0, call.deadlineMs - environment.now())));
  // The search provider rejects some searches.
  const searched = asked.web === true && numberOf(id) % 35 !== 2;
  const delivered = { ...deliver(random, asked, sent), model: answering, searched };
  oracle.delivered(id, delivered, sent.outputMax);
  const serviceTiers = findServiceTiers(call.tariff, answering);
  const named = delivered.tier === 'auto' ? undefined : delivered.tier;
  const tier = resolveTier(serviceTiers, sent.tier, named);
  const outcome = outcomeOf(delivered, () => bill.inputTokens(call.request, answering));
  const { charge = '' } = await bill.close({
    outcome: mutation?.outcome?.(outcome) ?? outcome,
    flag: delivered.reported ? undefined : 'output:absent',
    end: delivered.failed ? 'failed' : 'completed',
    answered: mutation?.answered?.(answering, call) ?? answering,
    tier: mutation?.tier ? mutation.tier(sent.tier, delivered.tier) : tier,
    isSearchBilled: mutation?.searched?.(searched, outcome) ?? searched,
  });
  return { id, account, refused: false, limited: bill.limitedTo !== undefined, charge: parseYuan(charge) };
}

function askUpstream({ mutation }: Pick<Server, 'mutation'>, call: BillableCall, bill: Bill): AskedUpstream {
  const model = call.model.base as Model;
  const { body: written, tier } = bodyFor(call, bill.limitOutputTokens(model) ?? call.outputTokensAsked);
  const body = mutation?.body?.(dialects[model], written) ?? written;
  const limit = limitIn(model, body);
  // If output costs nothing, only the client's limit is sent.
  const limitedTo = model === 'by-call' || model === 'free' ? undefined : bill.limitedTo;
  const id = call.identity.requestId;
  hold(
    limitedTo === undefined || (limit !== undefined && limit <= Math.max(limitedTo, leastSent(model))),
    `${id} is limited to ${limitedTo} tokens in ${dialects[model]}, but the upstream is sent ${limit}`,
  );
  return { tier, outputMax: limit === undefined ? undefined : limit * (call.request.n ?? 1) };
}

const leastSent = (model: Model): number => (dialects[model] === 'responses' ? 16 : 1);

function billableCall(made: CallToMake, nowMs: number): [BillableCall, CallAsked] {
  const { random, customer, id, metered, longestMs } = made;
  const key = random.pick(customer.keys);
  const name = random.pick(models);
  const others = random.chance(0.25) ? othersThan(name, random) : undefined;
  const web = numberOf(id) % 5 === 2;
  const model = { base: name, web, official: key.official && random.chance(0.5) };
  const alias = others && aliasOf([name, ...others]);
  const { account } = customer;
  const plan = account.plan && { ...account.plan, level: random.integer(1, 2) };
  const [content, tokens] = random.pick(texts as [(typeof texts)[0], ...typeof texts]);
  const named = callers[numberOf(id) % callers.length] ?? {};
  const tier = random.chance(0.5) ? random.pick(tierNames) : undefined;
  const call: BillableCall = {
    identity: { requestId: id, created: Math.floor(nowMs / 1000), model: model.base },
    request: {
      model: model.base,
      messages: [{ role: 'user', content }],
      ...(tier && { service_tier: tier }),
      ...(random.chance(0.6) && { max_tokens: random.integer(1, random.chance(0.2) ? 4_000 : 200) }),
      n:
        [name, ...(others ?? [])].every((one) => dialects[one] === 'chat') && random.chance(0.2)
          ? random.integer(2, 3)
          : 1,
    },
    model,
    ...(alias && { alias }),
    key,
    account: { ...account, plan, metered },
    snapshot,
    tariff: tariffOf({ model, alias, account, startedMs: nowMs }),
    limits: limitsOf(name),
    unknown: {},
    outputTokensAsked: undefined,
    startedMs: nowMs,
    deadlineMs: nowMs + longestMs,
    endpoint: 'chat',
    attribution: { end_user: named.endUser, tags: named.tags },
  };
  const asked: CallAsked = {
    account: account.account,
    key: key.hash.slice(0, 12),
    model: name,
    ...(others && { others }),
    official: model.official,
    metered,
    web,
    tier,
    prices: pricesOf(account.account),
    named,
    budgets: budgetsOf(account.account),
    startedMs: nowMs,
    inputTokens: tokens + random.integer(3, 16),
  };
  // Every second eligible call.
  const isOther =
    (call.request.max_tokens ?? 0) > 0 && call.request.n === 1 && id.charCodeAt(id.length - 1) % 2 === 0;
  return [isOther ? asMessages(call) : call, asked];
}

/** @param rules those of the configuration, unless they are wrong */
const tariffOf = (
  {
    model,
    alias,
    account,
    startedMs: nowMs,
  }: Pick<BillableCall, 'model' | 'alias' | 'account' | 'startedMs'>,
  rules: BillableCall['snapshot']['charges'] = snapshot.charges,
) =>
  buildTariff({
    models: alias?.models.map((one) => one.model) ?? [model.base],
    rulesOf: () => rules,
    termsOf: (name) => listCustomerTerms(snapshot.settings, account, name, nowMs),
    defaultOutputTokens: snapshot.settings.limits.defaultOutputTokens,
    search: model.web ? parseYuan(searchPrice) : undefined,
    nowMs,
  });

/** The same call through another endpoint. */
function asMessages(call: BillableCall): BillableCall {
  const { model, messages, max_tokens: limit, service_tier: tier } = call.request;
  const asked = tier === 'fast' ? { speed: tier } : { service_tier: tier };
  const body = { model, messages, max_tokens: limit, ...asked };
  const { call: read, outputTokensMax } = messagesEndpoint.read(body, {});
  return { ...call, ...read, endpoint: 'messages', outputTokensAsked: outputTokensMax };
}

/** The number in an id, which distinguishes ids of one moment. */
const numberOf = (id: string): number => Number(id.slice(-16));

/** One or two. */
function othersThan(name: Model, random: SeededRandom): Model[] {
  const first = random.integer(0, models.length - 2);
  const rest = models.filter((one) => one !== name);
  return [...rest.slice(first), ...rest.slice(0, first)].slice(0, random.integer(1, 2));
}

const limitsOf = (model: Model): ChannelLimits =>
  computeChannelLimits(channels.map((channel) => ({ channel, model })));

const aliasOf = (named: [Model, ...Model[]]): CalledAlias => {
  const serving = (model: Model): ServingModel => ({
    model,
    candidates: [],
    limits: limitsOf(model),
  });
  const [first, ...rest] = named;
  return { name: aliasName, onContextLength: false, models: [serving(first), ...rest.map(serving)] };
};

/** The outcome as the relay computes it: missing counts are estimated, here from the seen text. */
function outcomeOf(delivered: Delivered, inputTokens: () => number): AnswerOutcome {
  const { failed, anyContent, leftEarly, outputTokens, reported } = delivered;
  const details = reported && {
    cached_tokens: reported.cached ?? 0,
    cache_write_tokens: reported.written ?? 0,
    cache_write_1h_tokens: reported.writtenForHour ?? 0,
  };
  const usage = {
    prompt_tokens: reported?.input ?? inputTokens(),
    completion_tokens: outputTokens,
    ...(details && { prompt_tokens_details: details }),
  };
  return { failed, anyContent, leftEarly, usage };
}
