import { parseYuan } from '../../shared/billing/amount.ts';
import type { AnswerOutcome } from '../../shared/billing/usage/call-charge.ts';
import { Bill } from '../../shared/relay/money/bill.ts';
import type { BillableCall } from '../../shared/relay/money/reservation-request.ts';
import { parseModelName } from '../../shared/relay/call/model-name.ts';
import { asRefusal } from '../../shared/relay/http/refusal.ts';
import { models, channels, snapshot, type Customer } from './accounts.ts';
import type { Server } from './server.ts';
import type { SeededRandom } from './seeded-random.ts';
import { hold } from './watch.ts';

export const requestSeconds = 150;
/** The host's own reserve: an invocation that is not frozen is over by then, its settle included. */
const longestCallMs = requestSeconds * 1000;

/** How one call ended, as far as its client or its log can tell. */
export interface CallReport {
  id: string;
  account: string;
  /** It was refused, so nobody may be charged for it. */
  refused: boolean;
  /** It stood still, so its reservation may have expired unseen. */
  stoodStill?: boolean;
  /** What the log line says was charged, once the reservations took it. */
  charge?: bigint | undefined;
}

/** One call as a function makes it, with the real bill: undefined for a free one that touches nothing. */
export async function makeCall(
  server: Server,
  random: SeededRandom,
  customer: Customer,
  id: string,
): Promise<CallReport> {
  const { environment, reservations, quotas } = server;
  const call = billableCall(random, customer, id, environment.now());
  const { account } = customer.account;
  let bill: Bill;
  try {
    bill = await Bill.open(reservations, environment, call);
  } catch (error) {
    const { status } = asRefusal(error);
    hold(status === 429 || status === 503, `${id} was refused with ${status}: ${String(error)}`);
    return { id, account, refused: true, stoodStill: environment.stoodStill };
  }
  const written =
    call.model.base !== 'free' || call.key.rpm !== undefined || call.key.max_concurrency !== undefined;
  const open = quotas.items.get(account)?.open.get(id);
  hold(
    environment.stoodStill || !(written || call.model.official) || open?.tombstone === false,
    `the upstream hears of ${id}, but nothing is open for it`,
  );
  await environment.sleep(random.integer(0, Math.max(0, call.deadlineMs - environment.now())));
  const outcome = makeOutcome(random, call);
  const end = outcome.failed ? 'failed' : 'completed';
  const { charge = '' } = await bill.close({
    outcome,
    flag: random.chance(0.2) ? 'output:absent' : undefined,
    end,
  });
  return { id, account, refused: false, charge: parseYuan(charge) };
}

function billableCall(
  random: SeededRandom,
  { account, keys }: Customer,
  id: string,
  nowMs: number,
): BillableCall {
  const key = random.pick(keys);
  const model = parseModelName(random.pick(models), key.official && random.chance(0.5));
  const plan = account.plan && { ...account.plan, level: random.integer(1, 2) };
  return {
    identity: { requestId: id, created: Math.floor(nowMs / 1000), model: model.base },
    request: {
      model: model.base,
      messages: [{ role: 'user', content: 'x'.repeat(random.integer(1, 200)) }],
      max_tokens: random.integer(1, 200),
      n: random.chance(0.2) ? random.integer(2, 3) : 1,
    },
    model,
    key,
    account: { ...account, plan },
    snapshot,
    channels,
    unknown: {},
    outputTokensAsked: undefined,
    startedMs: nowMs,
    deadlineMs: nowMs + longestCallMs,
    endpoint: 'chat',
  };
}

/** Any ending; now and then the upstream counts far more than anybody expected. */
function makeOutcome(random: SeededRandom, { request }: BillableCall): AnswerOutcome {
  const failed = random.chance(0.3);
  const anyContent = random.chance(failed ? 0.5 : 0.95);
  const most = (request.max_tokens ?? 0) * (request.n ?? 1) * (random.chance(0.05) ? 5 : 1);
  const completion_tokens = anyContent ? random.integer(0, most) : 0;
  return {
    failed,
    anyContent,
    usage: { prompt_tokens: random.integer(0, 60), completion_tokens },
  };
}
