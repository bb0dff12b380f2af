/**
 * Answers a leaked key: refuses it at once and makes its successor in one transaction, and only then reads what it was used
 * for, so that reading costs no time in which it works.
 */
import { textOf } from '../../config/rows/read-row.ts';
import { isoTime } from '../../wire/iso-time.ts';
import { Failure, usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { Plan } from '../plan.ts';
import type { RawRow, RowWrite } from '../row-tables.ts';
import { makeKey, type MadeKey } from './create-key.ts';
import { earlierLeak, earlierLeakWords, type EarlierLeak } from './earlier-leak.ts';
import { findKey } from './find-key.ts';
import { viewKeyUse, type KeyUse, type KeyUseWanted } from './key-use.ts';
import { keyState } from './key-state.ts';

export interface LeakedKeyPlan extends Plan<RowWrite> {
  account: string;
  /** The leaked key's name in messages, and its hint. */
  name: string;
  hint: string;
  /** What the successor may do; undefined: none is made. */
  rights: string | undefined;
  use: KeyUseWanted;
  /** It was done before. Undefined: it was not. */
  earlier: EarlierLeak | undefined;
}

export interface LeakedKeyInput {
  written: string;
  /** Epoch milliseconds. Default: a day before, or before it was refused. */
  sinceMs?: number | undefined;
  /** Make no successor. */
  alone?: boolean | undefined;
}

const dayMs = 86_400_000;

export async function planLeakedKey(
  ports: OperatorPorts,
  { written, sinceMs, alone = false }: LeakedKeyInput,
): Promise<LeakedKeyPlan> {
  const found = await findKey(ports, written);
  const { hash, name, row } = found;
  const earlier = await earlierLeak(ports, found);
  const nowMs = ports.clock.now();
  const since = sinceMs ?? (earlier ? Date.parse(earlier.at) : nowMs) - dayMs;
  if (since >= nowMs) throw usageFailure('--since: wanted a time before now');
  const { state, why, row: read } = keyState({ ...row, enabled: true }, nowMs);
  const account = textOf(row, 'account');
  const hasSuccessor = !alone && !earlier && state === 'usable';
  const refused: RowWrite = {
    kind: 'update',
    table: 'keys',
    key: { hash },
    attributes: { enabled: false, _leaked: isoTime(nowMs) },
    // Two at once make one successor.
    unchanged: { _leaked: undefined },
  };
  const successor: RowWrite = { kind: 'create', table: 'keys', row: copyOf(row, hash, nowMs) };
  return {
    changes: earlier ? [] : [refused, ...(hasSuccessor ? [successor] : [])],
    effect: earlier
      ? earlierLeakWords(name, earlier)
      : [
          `the relay refuses ${name} within 30 seconds`,
          hasSuccessor
            ? `a new key of account ${account}: ${why}`
            : `no successor is made${alone ? '' : `: it would not work (${why})`}`,
        ],
    questions: earlier ? [] : [`Refuse ${name} at once?`],
    earlier,
    account,
    name,
    hint: read?.hint ?? '',
    rights: hasSuccessor ? why : undefined,
    use: { account, hash, sinceMs: since },
  };
}

function copyOf(row: RawRow, hash: string, nowMs: number): RawRow {
  const kept = Object.entries(row).filter(([name]) => !name.startsWith('_'));
  return { ...Object.fromEntries(kept), enabled: true, _created: isoTime(nowMs), _replaces: hash };
}

export interface LeakedKeyMade {
  /** Undefined: none was made. */
  successor: MadeKey | undefined;
  /** Undefined: it could not be read. */
  use: KeyUse | undefined;
  problem?: string;
}

interface LeakWatch {
  /** Called with the number of further ledger rows that were read. */
  onProgress: (count: number) => void;
  /** Called before they are read, which may take long: whoever stops it there has the key. */
  onMade?: (successor: MadeKey) => void;
}

export async function carryOutLeakedKey(
  ports: OperatorPorts,
  plan: LeakedKeyPlan,
  { onProgress, onMade }: LeakWatch,
): Promise<LeakedKeyMade> {
  const { changes, ...key } = makeKey(ports, plan);
  await ports.tables.writeTogether(changes);
  const successor = plan.rights === undefined ? undefined : key;
  if (successor) onMade?.(successor);
  try {
    return { successor, use: await viewKeyUse(ports, plan.use, onProgress) };
  } catch (error) {
    // The successor is made and must be shown, whatever is wrong with the ledger.
    if (!(error instanceof Failure)) throw error;
    return { successor, use: undefined, problem: error.message };
  }
}
