/**
 * Refunds what a call was charged, whole or in parts, as grants whose ids name the ledger row. The parts have numbers, and
 * each is made once, after those before it were read: together they never exceed the charge, however many operators
 * refund at once.
 */
import { formatYuan, parseYuan, type NanoYuan } from '../../billing/price.ts';
import { formatGrantLedgerId, type CloseRow } from '../../billing/ledger-row.ts';
import { isoTime } from '../../wire/iso-time.ts';
import { nameLeakGrant } from '../keys/leaked-key.ts';
import { findLateCharge } from '../ledger/ledger.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import { Failure, usageFailure } from '../plan.ts';
import { grantEffect, grantRow, repeatMs, type GrantPlan } from './grants.ts';

export interface RefundInput {
  /** The id of a ledger row, which is the request's, or the id of an answer. */
  id: string;
  /** Yuan as typed. Absent: all that was not refunded yet. */
  amount?: string | undefined;
  /** Shown to the customer. */
  reason?: string | undefined;
  /** The number of the part, so that a repeat cannot make another. Absent: the next one, if it does not look like a repeat. */
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
  const before = left === charge ? '' : `, of which ${formatYuan(charge - left)} were refunded before`;
  const charged = `request ${id} (${model}) was charged ${formatYuan(charge)} yuan${before}`;
  if (left <= 0n) throw new Failure(`${charged}: nothing is left to refund`);
  const amount = input.amount === undefined ? left : parseYuan(input.amount);
  if (amount === undefined || amount <= 0n || amount > left)
    throw usageFailure(
      `${charged}; --amount ${input.amount}: wanted yuan above 0, at most ${formatYuan(left)}`,
    );
  const number = earlier.length + 1;
  if (input.part !== undefined && input.part !== number)
    throw usageFailure(`${charged}; --part ${input.part}: the next part is ${number}`);
  const grantId = nameRefundPart(id, number);
  const reason = input.reason ?? `refund of ${id}`;
  const row = grantRow({ account, grant_id: grantId, reason, _created: isoTime(nowMs) }, amount);
  const conflict = new Failure(
    'somebody else refunded this request meanwhile and nothing was written: look at it again, then repeat',
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
    questions: [`Refund ${formatYuan(amount)} yuan to account ${account}?`],
    ...(isRepeated && {
      refusal:
        `${formatYuan(amount)} yuan of this request were refunded minutes ago, as ${nameRefundPart(id, number - 1)}: if this is the same ` +
        `part, it is made; if it is another, say so: request refund ${id} --amount ${formatYuan(amount)} --part ${number}`,
    }),
    warnings: returned === undefined ? [] : [describeReturned(leaked, returned)],
    account,
    grantId,
    amount,
  };
}

const describeReturned = (grantId: string, amount: NanoYuan): string =>
  `the grant ${grantId} returned ${formatYuan(amount)} yuan for calls of this key: is this one among them?`;

/** With all that the call was charged: its late charge, which may be below zero, is no call of its own. */
async function findChargedRow(ports: OperatorPorts, written: string): Promise<CloseRow> {
  const id = written.trim().replace(/^(chatcmpl-|resp-|late#)/, '');
  const reading = await ports.ledger.request(id);
  if (!reading) throw new Failure(`the ledger has no row ${id}: see \`ledger list\``);
  if ('problem' in reading) throw new Failure(`the row cannot be read: ${reading.problem}`);
  const { row } = reading;
  if (row.kind === 'grant')
    throw new Failure(`${id} is a grant, no charge: \`grant new\` with an amount below 0 corrects it`);
  const charge = row.charge + ((await findLateCharge(ports, row))?.charge ?? 0n);
  if (charge <= 0n) throw new Failure(`request ${id} was charged nothing, so nothing can be refunded`);
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
