import * as z from 'zod/mini';
import { formatYuan } from '../../billing/amount.ts';
import type { CloseRecord } from '../../billing/quota-item.ts';
import { Failure } from '../operator-failure.ts';
import type { Session } from '../../../infra/ops/session/session.ts';
import { remark } from '../../../infra/ops/cli/terminal/terminal.ts';

const wholeNumber = z.string().check(z.regex(/^-?\d+$/));

/** The fields of a `settle_lost` log line: a close that could not be written, whole. */
const Loss = z.object({
  message: z.literal('settle_lost'),
  request_id: z.string(),
  account: z.string(),
  give_back: z.boolean(),
  kind: z.enum(['settled', 'released', 'expired', 'cancelled']),
  charge_nano: wholeNumber,
  at: z.number(),
  endpoint: z.optional(z.string()),
  prompt_tokens: z.optional(z.number()),
  completion_tokens: z.optional(z.number()),
  estimated: z.optional(z.boolean()),
  end: z.optional(z.string()),
  cost_nano: z.optional(wholeNumber),
});
type Loss = z.infer<typeof Loss>;

/** Writes the closes that log lines say were lost; a line per loss that could not be made good. */
export async function repairLosses(session: Session, text: string): Promise<string[]> {
  const losses = lossesIn(text);
  if (losses.length === 0) throw new Failure('there is no settle_lost line in this input');
  const findings: string[] = [];
  for (const loss of losses) {
    const finding = await repair(session, loss);
    if (finding !== undefined) findings.push(finding);
  }
  return findings;
}

/** Takes raw lines, lines with a time before the JSON, and the answer of `aws logs filter-log-events`. */
function lossesIn(text: string): Loss[] {
  const messages = eventMessages(text) ?? text.split('\n');
  const found = messages.flatMap((line) => {
    const start = line.indexOf('{');
    const parsed = start < 0 ? undefined : z.safeParse(Loss, parseJson(line.slice(start)));
    return parsed?.success ? [parsed.data] : [];
  });
  return [...new Map(found.map((loss) => [loss.request_id, loss])).values()];
}

function eventMessages(text: string): string[] | undefined {
  const Events = z.object({ events: z.array(z.object({ message: z.string() })) });
  const parsed = z.safeParse(Events, parseJson(text));
  return parsed.success ? parsed.data.events.map((event) => event.message) : undefined;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

async function repair(session: Session, loss: Loss): Promise<string | undefined> {
  const { account, request_id: id } = loss;
  const closeRecord = closeRecordOf(loss);
  const reading = await session.ledger.quota(account);
  const entry = reading && 'row' in reading ? reading.row.open.get(id) : undefined;
  if (entry) {
    const write = { account, id, entry, releaseSlot: loss.give_back, closeRecord };
    const reply = await session.ledger.close(write);
    if (reply.done) {
      remark(`${account}: request ${id} is closed now, charged ${formatYuan(closeRecord.charge)} yuan`);
      return undefined;
    }
  }
  return closedMeanwhile(session, account, closeRecord);
}

/** The sweeper, or an earlier repair, was faster. */
async function closedMeanwhile(
  session: Session,
  account: string,
  closeRecord: CloseRecord,
): Promise<string | undefined> {
  const reading = await session.ledger.request(closeRecord.id);
  if (reading && 'row' in reading && reading.row.kind !== 'grant') {
    const { kind, charge } = reading.row;
    if (kind === closeRecord.kind && charge === closeRecord.charge) {
      remark(`${account}: request ${closeRecord.id} was closed already, as it should be`);
      return undefined;
    }
    return `${account}: request ${closeRecord.id} was ${kind} meanwhile and charged ${formatYuan(charge)}, not ${formatYuan(closeRecord.charge)} yuan: a grant can make up for it`;
  }
  return `${account}: request ${closeRecord.id} is not open, and the ledger has no row of it yet: repeat in a minute`;
}

const closeRecordOf = (loss: Loss): CloseRecord => ({
  id: loss.request_id,
  kind: loss.kind,
  charge: BigInt(loss.charge_nano),
  at: loss.at,
  endpoint: loss.endpoint,
  promptTokens: loss.prompt_tokens,
  completionTokens: loss.completion_tokens,
  estimated: loss.estimated,
  end: loss.end,
  cost: loss.cost_nano === undefined ? undefined : BigInt(loss.cost_nano),
});
