import { formatDecimal, formatYuan } from '../../billing/amount.ts';
import { parsePrice, type Price } from '../../billing/price.ts';
import type { OpenEntry } from '../../billing/quota-item.ts';
import { type CloseRow, type LedgerRow, ledgerTimeMs } from '../../billing/ledger-row.ts';
import { requestTimeMs } from '../../wire/request-id.ts';
import { Failure, usageFailure } from '../operator-failure.ts';
import { isoTime } from '../../wire/iso-time.ts';
import { ledgerJson } from '../ledger/ledger-view.ts';
import { priceWords, problemOf } from '../../billing/audit/recompute.ts';
import type { Session } from '../../../infra/ops/session/session.ts';
import { remark, say, sayColumns, sayJson } from '../../../infra/ops/cli/terminal/terminal.ts';

/** Shows a request's ledger row and, step by step, how its price came about. */
export async function showRequest(session: Session, written: string): Promise<void> {
  const id = written.trim().replace(/^(chatcmpl-|resp-)/, '');
  const isGrant = id.startsWith('grant#');
  if (!isGrant && requestTimeMs(id) === undefined)
    throw usageFailure('a request id has 26 characters: the header x-request-id, or what follows chatcmpl-');
  const reading = await session.ledger.request(id);
  if (reading === undefined) return showOpen(session, id);
  if ('problem' in reading) throw new Failure(`the row cannot be read: ${reading.problem}`);
  const { row } = reading;
  const problem = problemOf(row);
  if (session.json) sayJson({ ...ledgerJson(row), steps: stepsOf(row), problem: problem ?? null });
  else {
    say(`${row.kind === 'grant' ? 'grant' : 'request'} ${row.id} of account ${row.account}`);
    sayColumns(stepsOf(row).map(([what, words]) => [`  ${what}`, words]));
  }
  if (problem !== undefined) throw new Failure(`this row does not add up: ${problem}`);
  if (!session.json) say('The charge follows from the row: it adds up.');
}

/** Not in the ledger: perhaps it is still under way. */
async function showOpen(session: Session, id: string): Promise<void> {
  for await (const accounts of session.ledger.accounts()) {
    for (const account of accounts) {
      const reading = await session.ledger.quota(account);
      const entry = reading && 'row' in reading ? reading.row.open.get(id) : undefined;
      if (entry) return sayOpen(session, account, id, entry);
    }
  }
  throw new Failure(
    `no ledger row and no open reservation has the id ${id}: was it refused, or free of charge? Its log line says so`,
  );
}

function sayOpen(session: Session, account: string, id: string, entry: OpenEntry): void {
  const until = isoTime(entry.until * 1000);
  const reserved = formatYuan(entry.amount);
  if (session.json) return sayJson({ id, account, open: true, model: entry.model, reserved, until });
  say(`request ${id} of account ${account} is open: model ${entry.model}, ${reserved} yuan reserved`);
  remark(`It ends by ${until}, or is closed as expired some minutes after that.`);
}

type Step = [what: string, words: string];

/** How a row came about, in the order in which it happened. */
function stepsOf(row: LedgerRow): Step[] {
  const booked: Step = ['booked', row.at];
  if (row.kind === 'grant')
    return [['amount', `${formatYuan(row.amount)} yuan`], ['reason', row.reason], booked];
  const price = parsePrice(row.price);
  return [
    ['began', isoTime(ledgerTimeMs(row))],
    ['asked', `${row.endpoint ?? '-'}, model ${row.model}, key ${row.key}`],
    ['price', price ? priceWords(price) : row.price],
    ['reserved', reservedWords(row)],
    ['ended', endedWords(row)],
    ...(price && row.kind === 'settled' ? tokenSteps(row, price) : []),
    ['charged', chargedWords(row)],
    ...backStep(row),
    booked,
  ];
}

function reservedWords(row: CloseRow): string {
  if (row.official) return 'nothing: official calls deduct nothing';
  const [item, month] = row.plan_slot?.split('@') ?? [];
  if (item !== undefined) return `a call of the plan entry "${item}", month from ${month}`;
  return `${formatYuan(row.reserved)} yuan of the balance`;
}

const kindWords: Record<CloseRow['kind'], string> = {
  settled: 'settled: there was an answer, or a part of one',
  released: 'released: no answer, so nothing is due',
  expired: 'expired: the function died, so the input alone is due',
  cancelled: 'cancelled: it never began',
};

const endedWords = ({ kind, end }: CloseRow): string =>
  `${kindWords[kind]}${end === undefined ? '' : ` (${end})`}`;

/** Exact: a unit price has 12 decimals, and is for a thousand tokens. */
const part = (tokens: number, pico: bigint): string =>
  `${tokens} x ${formatDecimal(pico, 12)} / 1,000 = ${formatDecimal(pico * BigInt(tokens), 15)}`;

function tokenSteps(row: CloseRow, price: Price): Step[] {
  const { prompt_tokens: input = 0, completion_tokens: output = 0, estimated } = row;
  const source = estimated ? 'the relay estimated, as the upstream told none' : 'the upstream told';
  const counted: Step = ['counted', `${input} input and ${output} output tokens, which ${source}`];
  if (price.type !== 'token-billing') return [counted];
  return [counted, ['input', part(input, price.input)], ['output', part(output, price.output)]];
}

function chargedWords(row: CloseRow): string {
  const charged = `${formatYuan(row.charge)} yuan`;
  if (row.official && row.cost !== undefined)
    return `${charged}; outside official mode it would have cost ${formatYuan(row.cost)} yuan`;
  return row.kind === 'settled' && row.charge > 0n
    ? `${charged}, rounded once, half up, to 9 decimals`
    : charged;
}

function backStep({ reserved, charge }: CloseRow): Step[] {
  if (reserved === charge) return [];
  if (reserved > charge) return [['returned', `${formatYuan(reserved - charge)} yuan to the balance`]];
  return [['taken', `${formatYuan(charge - reserved)} yuan more than was reserved`]];
}
