/** What an earlier answer to a leaked key did, for whoever asks again: its reply was lost, or somebody else was quicker. Writes nothing. */
import { textOf } from '../../config/rows/read-row.ts';
import { usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { FoundKey } from './find-key.ts';
import { listKeys, type KeyView } from './list-keys.ts';

export interface EarlierLeak {
  /** ISO 8601. */
  at: string;
  /** Undefined: none was made. */
  successor: (Pick<KeyView, 'state'> & { hash: string; hint: string }) | undefined;
}

/** Undefined: this key was not said to have leaked. */
export async function earlierLeak(
  ports: OperatorPorts,
  { hash, row }: FoundKey,
): Promise<EarlierLeak | undefined> {
  const at = row['_leaked'];
  if (typeof at !== 'string') return undefined;
  const account = row['account'];
  if (typeof account !== 'string') throw usageFailure('the row of this key has no account');
  const successor = (await listKeys(ports, { account })).find((each) => each.row['_replaces'] === hash);
  return {
    at,
    successor: successor && {
      state: successor.state,
      hash: textOf(successor.row, 'hash'),
      hint: textOf(successor.row, 'hint'),
    },
  };
}

/** Sentences: what is done, and what remains. */
export const earlierLeakWords = (name: string, { at, successor }: EarlierLeak): string[] => [
  `${name} was disabled as leaked at ${at}: nothing to write`,
  successor
    ? `its successor is ${successor.hint} (hash ${successor.hash.slice(0, 12)}, ${successor.state}). Nobody has it? key rotate ${successor.hash.slice(0, 12)} --grace 0`
    : 'no successor was made: key create makes a key',
];
