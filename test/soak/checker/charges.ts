/** The allowed charges of a call, by what its upstream wrote and reported, and the ledger row that it must have. */
import { costOf, type ChargeText } from '../../oracle/price-list.ts';
import type { Attempt, CallSeen, Circumstances } from './observations.ts';

/** One possible ending of a call. */
export interface Ending {
  kinds: readonly string[];
  /** Nano-yuan, summed over all rows of the call. */
  least: bigint;
  most: bigint;
}

const free: Pick<Ending, 'least' | 'most'> = { least: 0n, most: 0n };
/** Estimates are 5 to 16 % off on common kinds of text, and more on short ones. */
const estimateLeast = 0.5;
const estimateMost = 1.8;
const estimateSlack = 24;
/** All prompts have about this length. */
const inputTokens = 20;
/** A kill just after the last byte hits a call that is not settled yet. */
const settlingMs = 2_000;

export const tokensIn = (text: string): number => text.split(' ').filter((word) => word !== '').length;

/** @param rule the price in the ledger row, or one that the model had */
export function endingsOf(call: CallSeen, rule: ChargeText, around: Circumstances): Ending[] {
  const attempts = around.attemptsOf(call);
  const endings: Ending[] = [];
  const given = call.end === 'whole' ? attempts.filter(({ text }) => text === call.text) : attempts;
  for (const attempt of given.filter(({ text }) => text !== '')) endings.push(settled(call, attempt, rule));
  if (call.end !== 'whole') endings.push({ kinds: ['released', 'cancelled'], ...free });
  if (around.struck(call, ['kill-answering', 'clock-skew', 'freeze'], settlingMs))
    endings.push({ kinds: ['expired'], ...estimated(rule, 0) });
  return endings;
}

function settled(call: CallSeen, attempt: Attempt, rule: ChargeText): Ending {
  const kinds = ['settled', 'expired'];
  if (rule.type === 'times-billing') {
    const once = costOf(rule, { input: 0, output: 0 });
    // A client that leaves before any content, or before a JSON answer is complete, pays nothing.
    return { kinds, least: call.end === 'whole' ? once : 0n, most: once };
  }
  // An abandoned upstream may have written its end and its counts a moment later.
  const read = attempt.whole && !isTimeOut(call.error);
  if (read && attempt.reported) {
    const cost = costOf(rule, attempt.reported);
    return { kinds, least: cost, most: cost };
  }
  const bounds = estimated(rule, attempt.words ?? tokensIn(attempt.text));
  return { kinds, ...bounds, least: read ? bounds.least : lessRead(rule) };
}

/** Inside an answer of Responses the code is OpenAI's, which has none for time. */
const isTimeOut = (error: CallSeen['error']): boolean =>
  error?.code === 'upstream_timeout' || /did not answer in time/.test(String(error?.message));

/** The relay may have read less of a broken answer than its upstream wrote. */
const lessRead = (rule: ChargeText): bigint => estimated(rule, 0).least;

function estimated(rule: ChargeText, output: number): Pick<Ending, 'least' | 'most'> {
  if (rule.type !== 'token-billing') return free;
  const most = (count: number): number => Math.ceil(count * estimateMost) + estimateSlack;
  return {
    least: costOf(rule, { input: 0, output: Math.floor(output * estimateLeast) }),
    most: costOf(rule, { input: most(inputTokens), output: output === 0 ? 0 : most(output) }),
  };
}
