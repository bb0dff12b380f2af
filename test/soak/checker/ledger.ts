/** Checks that each call has its rows exactly once, with the right amount, and that no row lacks a call. */
import { exactYuan, nano } from '../../oracle/exact.ts';
import { ruleOfText } from '../../oracle/price-list.ts';
import { endingsOf, type Ending } from './charges.ts';
import type { CallSeen, Circumstances, Finding, Observations, Row } from './observations.ts';

const latePrefix = 'late#';
const grantPrefix = 'grant#';

export interface CallRows {
  row: Row;
  /** Including the difference that a late close charged. */
  charge: bigint;
}

/** Amounts may be negative in rows of late closes. */
export function nanoOf(value: unknown): bigint {
  const text = typeof value === 'bigint' ? value.toString() : `${value as number | string}`;
  return text.startsWith('-') ? -nano(exactYuan(text.slice(1))) : nano(exactYuan(text));
}

export const isCallRow = (row: Row): boolean => !String(row['id']).startsWith(grantPrefix);
export const isLateRow = (row: Row): boolean => String(row['id']).startsWith(latePrefix);

/** Rows by request id. */
export function rowsByCall(ledger: readonly Row[]): Map<string, CallRows> {
  const rows = new Map<string, CallRows>();
  const own = ledger.filter((row) => isCallRow(row) && !isLateRow(row));
  for (const row of own) rows.set(String(row['id']), { row, charge: nanoOf(row['charge'] ?? 0) });
  for (const row of ledger.filter(isLateRow)) {
    const known = rows.get(String(row['id']).slice(latePrefix.length));
    if (known) known.charge += nanoOf(row['charge'] ?? 0);
  }
  return rows;
}

export function ledgerFindings({ calls, tables }: Observations, around: Circumstances): Finding[] {
  const rows = rowsByCall(tables.ledger);
  const findings: Finding[] = [];
  const say = (rule: string, what: string): void => void findings.push({ rule, what });
  const unnamed = new Map<string, CallSeen[]>();
  for (const call of calls) {
    if (call.requestId === undefined) {
      unnamed.set(call.key, [...(unnamed.get(call.key) ?? []), call]);
      continue;
    }
    const known = rows.get(call.requestId);
    rows.delete(call.requestId);
    const name = `call ${call.number} (${call.fault}, ${call.end}, ${call.requestId})`;
    if (!known) {
      if (around.attemptsOf(call).length > 0)
        say('lost', `${name} reached its upstream, but has no ledger row`);
      continue;
    }
    if (String(known.row['key']) !== call.key)
      say('doubled', `${name} is on the key ${String(known.row['key'])}`);
    const wrong = wrongRow(call, known, around);
    if (wrong) say('charge', `${name} ${wrong}`);
  }
  const leftByKey = Map.groupBy(rows.values(), ({ row }) => String(row['key']));
  for (const key of new Set([...unnamed.keys(), ...leftByKey.keys()])) {
    const left = leftByKey.get(key) ?? [];
    const some = unnamed.get(key) ?? [];
    const reached = (call: CallSeen): boolean => around.attemptsOf(call).length > 0;
    const pairs = matched(left, some, {
      fits: (each, call) => wrongRow(call, each, around) === undefined,
      needsRow: reached,
    });
    const without = some.filter((call) => !pairs.calls.has(call));
    for (const each of pairs.rowsLeft) sayOfRow(each, without.shift(), around, say);
    for (const call of without.filter(reached))
      say(
        'lost',
        `call ${call.number} (${call.fault}, ${call.end}) reached its upstream, but has no ledger row`,
      );
  }
  return findings;
}

function wrongRow(call: CallSeen, { row, charge }: CallRows, around: Circumstances): string | undefined {
  const endings = endingsOf(
    call,
    ruleOfText(typeof row['price'] === 'string' ? row['price'] : '0:free'),
    around,
  );
  const kind = String(row['kind']);
  const fits = ({ kinds, least, most }: Ending): boolean =>
    kinds.includes(kind) && charge >= least && charge <= most;
  if (endings.some(fits)) return undefined;
  const wanted = endings.map(
    ({ kinds, least, most }) => `${kinds.join('/')} ${least}${most > least ? ` to ${most}` : ''}`,
  );
  return `is ${kind} for ${charge} at ${String(row['price'])}; wanted: ${wanted.join(', or ') || 'no row'}`;
}

interface Matching {
  fits: (row: CallRows, call: CallSeen) => boolean;
  needsRow: (call: CallSeen) => boolean;
}

/**
 * A client that never got headers does not know its request's id, so rows are matched by key. Several calls may fit a
 * row, so augmenting paths exchange pairs: first for the calls that must have a row, then for the remaining
 * rows.
 */
function matched(rows: readonly CallRows[], calls: readonly CallSeen[], { fits, needsRow }: Matching) {
  const rowOf = new Map<CallSeen, CallRows>();
  const callOf = new Map<CallRows, CallSeen>();
  const pair = (row: CallRows, call: CallSeen): boolean => {
    rowOf.set(call, row);
    callOf.set(row, call);
    return true;
  };
  const findRow = (call: CallSeen, seen: Set<CallRows>): boolean =>
    rows.some((row) => {
      if (seen.has(row) || !fits(row, call)) return false;
      seen.add(row);
      const other = callOf.get(row);
      return (!other || findRow(other, seen)) && pair(row, call);
    });
  const findCall = (row: CallRows, seen: Set<CallSeen>): boolean =>
    calls.some((call) => {
      if (seen.has(call) || !fits(row, call)) return false;
      seen.add(call);
      const other = rowOf.get(call);
      return (!other || findCall(other, seen)) && pair(row, call);
    });
  for (const call of calls.filter(needsRow)) findRow(call, new Set());
  for (const row of rows) if (!callOf.has(row)) findCall(row, new Set());
  return { calls: rowOf, rowsLeft: rows.filter((row) => !callOf.has(row)) };
}

/** Reports a row that fits no call. @param call a call without a row */
function sayOfRow(
  left: CallRows,
  call: CallSeen | undefined,
  around: Circumstances,
  say: (rule: string, what: string) => void,
): void {
  const { row } = left;
  const name = `the row ${String(row['id'])} (${String(row['kind'])}, ${left.charge})`;
  if (!call) return say('doubled', `${name} is of no call`);
  say('charge', `${name}: call ${call.number} (${call.fault}, ${call.end}) ${wrongRow(call, left, around)}`);
}
