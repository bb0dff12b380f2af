/** Creates batches of redeem codes, lists them with their redemptions, and revokes unredeemed codes. Codes themselves are never stored. */
import { formatYuan, parseYuan } from '../../billing/money.ts';
import {
  codeBytes,
  codeIdOf,
  CodeRow,
  findCodeState,
  formatCode,
  hashCode,
} from '../../config/rows/code-row.ts';
import { readRow, textOf } from '../../config/rows/read-row.ts';
import { isoTime, utcDay } from '../../wire/iso-time.ts';
import { compareCodeUnits } from '../../wire/json.ts';
import { normalizeMoments } from '../moment.ts';
import type { OperatorPorts, RowWrite } from '../operator-ports.ts';
import { Failure, formatCount, formatMoney, requireValid, usageFailure, type Plan } from '../plan.ts';

export interface CodesInput {
  count: number;
  /** Yuan per code, as typed. */
  amount: string;
  /** Default: a generated name. */
  batch?: string | undefined;
  /** A time in any form that rows accept. Default: the codes do not expire. */
  expires?: string | undefined;
}

/** The columns of lists, for people and programs. Add new ones at the end. */
export const madeNames = ['code', 'id', 'batch', 'amount', 'expires_at'] as const;
export const codeNames = ['id', 'batch', 'amount', 'state', 'account', 'redeemed_at', 'expires_at'] as const;
export const batchNames = [
  'batch',
  'created',
  'codes',
  'open',
  'redeemed',
  'credited',
  'revoked',
  'expired',
] as const;

const countMax = 10_000;

/** `changes`: the row that all codes of the batch share. `carryOutCodes` adds the hash of each code. */
export async function planCodes(ports: OperatorPorts, { count, amount, batch, expires }: CodesInput) {
  const nowMs = ports.clock.now();
  const now = isoTime(nowMs);
  const name = batch ?? nameBatch(ports, nowMs);
  const facts = normalizeMoments(
    { batch: name, ...(expires !== undefined && { expires_at: expires }) },
    nowMs,
  );
  const { row } = requireValid(
    readRow(CodeRow, { ...facts, amount, hash: 'of each' }),
    'nothing was written: ',
  );
  if (!(Number.isSafeInteger(count) && count > 0 && count <= countMax))
    throw usageFailure(`count: use 1 to ${countMax} codes a batch`);
  if ((row.expires_at ?? Infinity) <= nowMs) throw usageFailure('expires_at: is in the past');
  const isTaken = batch !== undefined && (await listCodes(ports, batch)).codes.length > 0;
  const until = row.expires_at === undefined ? '' : `, valid until ${isoTime(row.expires_at)}`;
  return {
    changes: [{ ...facts, amount: Number(formatYuan(row.amount)), _created: now }],
    effect: [`Create ${formatCount(count, 'code')} of ${formatMoney(row.amount)} (batch ${name}${until})`],
    questions: [],
    ...(isTaken && { refusal: `batch ${batch} already exists: choose another name` }),
    count,
    facts: { batch: name, amount: formatYuan(row.amount), expires_at: facts.expires_at },
  };
}

/** Starts with the day, so that names sort by time. */
export const nameBatch = ({ random }: Pick<OperatorPorts, 'random'>, nowMs: number): string =>
  `${utcDay(nowMs)}-${random.hex(3)}`;

/** One transaction writes this many codes, so a batch of this size is created completely or not at all. */
const togetherMax = 100;

/** @returns the codes, which can't be shown again */
export async function carryOutCodes(
  { random, tables }: OperatorPorts,
  { changes, facts, count }: Awaited<ReturnType<typeof planCodes>>,
) {
  const made = Array.from({ length: count }, () => {
    const code = formatCode(random.hex(codeBytes));
    const hash = hashCode(code) ?? '';
    return { code, id: codeIdOf(hash), hash };
  });
  for (let at = 0; at < count; at += togetherMax) {
    const some = made.slice(at, at + togetherMax);
    const writes = some.map(({ hash }): RowWrite => ({
      kind: 'create',
      table: 'codes',
      row: { ...changes[0], hash },
    }));
    await tables.writeTogether(writes).catch((error: unknown) => {
      const why = error instanceof Error ? error.message : String(error);
      const advice = `revoke the codes that were written with \`grant revoke ${facts.batch}\``;
      throw new Failure(`${why}; ${advice}`, error instanceof Failure ? error.exitCode : 1);
    });
  }
  return made.map(({ code, id }) => Object.assign({ code, id }, facts));
}

/** View: all codes, or those of one batch. Redeemed codes come first, the latest at the top. */
export async function listCodes({ tables, clock }: OperatorPorts, batch?: string) {
  const problems: string[] = [];
  const codes = (await tables.scan('codes')).flatMap((raw) => {
    const reading = readRow(CodeRow, raw);
    if ('problem' in reading) return (problems.push(`a code can't be read: ${reading.problem}`), []);
    const { hash, amount, ...row } = reading.row;
    if (batch !== undefined && row.batch !== batch) return [];
    const [redeemed_at, expires_at, created] = ['redeemed_at', 'expires_at', '_created'].map((at) =>
      textOf(raw, at),
    );
    const state = findCodeState(reading.row, clock.now());
    const facts = { id: codeIdOf(hash), batch: row.batch, amount: formatYuan(amount), state };
    return [{ ...facts, account: row.redeemed_by ?? '', redeemed_at, expires_at, created, hash }];
  });
  codes.sort(
    (a, b) => compareCodeUnits(b.redeemed_at ?? '', a.redeemed_at ?? '') || compareCodeUnits(a.id, b.id),
  );
  return { codes, problems };
}

/** View: one line for each batch, newest first. `credited`: yuan of its redeemed codes. */
export async function listBatches(ports: OperatorPorts) {
  const { codes, problems } = await listCodes(ports);
  const batches = [...Map.groupBy(codes, ({ batch }) => batch)].map(([batch, all]) => {
    const inState = (state: ReturnType<typeof findCodeState>) => all.filter((each) => each.state === state);
    const redeemed = inState('redeemed');
    return {
      batch,
      created: all[0]?.created ?? '',
      codes: all.length,
      open: inState('open').length,
      redeemed: redeemed.length,
      credited: formatYuan(redeemed.reduce((sum, { amount }) => sum + (parseYuan(amount) ?? 0n), 0n)),
      revoked: inState('revoked').length,
      expired: inState('expired').length,
    };
  });
  return { batches: batches.toSorted((a, b) => compareCodeUnits(b.created, a.created)), problems };
}

/** @param name a batch, a code, or a code's id. A code that is redeemed in the meantime stays redeemed. */
export async function planRevokeCodes(ports: OperatorPorts, name: string): Promise<Plan<RowWrite>> {
  const { codes } = await listCodes(ports);
  const hash = hashCode(name);
  const named = codes.filter((each) => each.batch === name || each.id === name || each.hash === hash);
  if (named.length === 0) throw usageFailure(`no batch or code ${name}: see \`grant batches\``);
  const open = named.filter(({ state }) => state === 'open' || state === 'expired');
  const revoked_at = isoTime(ports.clock.now());
  return {
    changes: open.map((code) => ({
      kind: 'update',
      table: 'codes',
      key: { hash: code.hash },
      attributes: { revoked_at },
      unchanged: { redeemed_by: undefined, revoked_at: undefined },
    })),
    effect: [
      `Revoke ${formatCount(open.length, 'code')} of ${formatCount(named.length, 'code')}; redeemed codes keep their credit`,
    ],
    questions: [`Revoke ${formatCount(open.length, 'code')}?`],
  };
}
