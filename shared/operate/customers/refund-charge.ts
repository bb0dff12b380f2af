/**
 * Refunds what a call was charged, whole or in parts, as grants whose ids name the ledger row. The parts have numbers, and
 * each is made once, after those before it were read: together they never exceed the charge, however many operators
 * refund at once.
 */
import { formatYuan, parseYuan, type NanoYuan } from '../../billing/money.ts';
import { formatGrantLedgerId, type CloseRow } from '../../billing/ledger-row.ts';
import { isoTime } from '../../wire/iso-time.ts';
import { nameLeakGrant } from '../keys/leaked-key.ts';
import { findLateCharge } from '../ledger/ledger.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import { Failure, formatMoney, usageFailure } from '../plan.ts';
import { grantEffect, grantRow, repeatMs, type GrantPlan } from './grants.ts';

export interface RefundInput {
  /** The id of a ledger row, which is the request's, or the id of an answer. */
  id: string;
  /** Yuan as typed; by default everything not yet refunded. */
  amount?: string | undefined;
  /** Shown to the customer. */
  reason?: string | undefined;
  /**
   * The number of the part, so that a repeated command creates no second one. By default the next number, unless
   * that looks like a repeat.
   */
  part?: number | undefined;
}

/** `carryOutWrites` carries it out; it throws if another part was made meanwhile. */
export async function planRefundCharge(ports: OperatorPorts, input: RefundInput): Promise<GrantPlan> {
  const { account, id, charge, model, key } = await findChargedRow(ports, input.id);
  const nowMs = ports.clock.now();
  const grants = (await Array.fromAsync(ports.ledger.grants(account))).flat();
  const written = new Map(grants.map(({ grantId, amount }) => [grantId, amount]));
  const earlier = await readEarlierParts(ports, id, written);
  const left = earlier.reduce((sum, part) => sum - part.amount, charge);
  const before = left === charge ? '' : `, of which ${formatMoney(charge - left)} is already refunded`;
  const charged = `Request ${id} (${model}) was charged ${formatMoney(charge)}${before}`;
  if (left <= 0n) throw new Failure(`${charged}: nothing is left to refund`);
  const amount = input.amount === undefined ? left : parseYuan(input.amount);
  if (amount === undefined || amount <= 0n || amount > left)
    throw usageFailure(
      `${charged}; --amount ${input.amount}: use more than 0 and at most ${formatYuan(left)}`,
    );
  const number = earlier.length + 1;
  if (input.part !== undefined && input.part !== number)
    throw usageFailure(`${charged}; --part ${input.part}: the next part is ${number}`);
  const grantId = nameRefundPart(id, number);
  const reason = input.reason ?? `refund of ${id}`;
  const row = grantRow({ account, grant_id: grantId, reason, _created: isoTime(nowMs) }, amount);
  const conflict = new Failure(
    'nothing was written: someone else refunded this request in the meantime. Review it and try again',
  );
  // A command that was stopped after its write looks like this one.
  const last = earlier.at(-1);
  const isRepeated = input.part === undefined && last?.amount === amount && last.atMs > nowMs - repeatMs;
  // A leaked key is refunded as a whole, since a time that the grant does not say.
  const leaked = nameLeakGrant(key);
  const returned = parseYuan(written.get(leaked) ?? '');
  return {
    changes: [{ kind: 'create', table: 'grants', row, conflict }],
    effect: [charged, grantEffect({ account, amount, grantId })],
    questions: [`Refund ${formatMoney(amount)} to ${account}?`],
    ...(isRepeated && {
      refusal:
        `${formatMoney(amount)} of this request was refunded minutes ago (grant "${nameRefundPart(id, number - 1)}"). ` +
        `To refund another part: request refund ${id} --amount ${formatYuan(amount)} --part ${number}`,
    }),
    warnings: returned === undefined ? [] : [describeReturned(leaked, returned)],
    account,
    grantId,
    amount,
  };
}

const describeReturned = (grantId: string, amount: NanoYuan): string =>
  `grant "${grantId}" already refunded ${formatMoney(amount)} for calls of this key, possibly including this one`;

/** With all that the call was charged: its late charge, which may be below zero, is no call of its own. */
async function findChargedRow(ports: OperatorPorts, written: string): Promise<CloseRow> {
  const id = written.trim().replace(/^(chatcmpl-|resp-|late#)/, '');
  const reading = await ports.ledger.request(id);
  if (!reading) throw new Failure(`no ledger row ${id}: see \`ledger list\``);
  if ('problem' in reading) throw new Failure(`the ledger row cannot be read: ${reading.problem}`);
  const { row } = reading;
  if (row.kind === 'grant')
    throw new Failure(`${id} is a grant, not a charge: correct it with a negative \`grant new\``);
  const charge = row.charge + ((await findLateCharge(ports, row))?.charge ?? 0n);
  if (charge <= 0n) throw new Failure(`request ${id} was not charged, so there is nothing to refund`);
  return { ...row, charge };
}

/** The first part needs no number: nearly all refunds have one part. */
const nameRefundPart = (id: string, number: number): string =>
  `refund#${id}${number === 1 ? '' : `#${number}`}`;

/**
 * The parts that were made, in order. What was applied counts as the ledger has it: a row of `grants` may have been edited
 * or deleted since. `atMs`: when it was applied; one that is not yet was made a moment ago.
 * @param written amounts by id of the grant
 */
async function readEarlierParts({ ledger }: OperatorPorts, id: string, written: ReadonlyMap<string, string>) {
  const parts: { amount: NanoYuan; atMs: number }[] = [];
  for (;;) {
    const grantId = nameRefundPart(id, parts.length + 1);
    const applied = await ledger.request(formatGrantLedgerId(grantId));
    const row = applied && 'row' in applied && applied.row.kind === 'grant' ? applied.row : undefined;
    const amount = row?.amount ?? parseYuan(written.get(grantId) ?? '');
    if (amount === undefined) {
      if (applied || written.has(grantId))
        throw new Failure(
          `the amount of the earlier refund ${grantId} cannot be read: see \`customer show\``,
        );
      return parts;
    }
    parts.push({ amount, atMs: row ? Date.parse(row.at) : Infinity });
  }
}
