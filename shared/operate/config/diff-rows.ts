import { emptyRows } from '../../config/config-rows.ts';
import { changesBetween } from './row-changes.ts';
import { badRows, findingsIn } from './findings.ts';
import { sayChanges, sayChangesJson } from '../../../infra/ops/cli/print/config.ts';
import type { Session } from '../../../infra/ops/session/session.ts';
import { say } from '../../../infra/ops/cli/terminal/terminal.ts';

/**
 * Shows what changed from version `from` to version `to`; without `to`, up to the newest; without both, what the tables
 * hold beyond the newest.
 */
export async function diffConfig(
  session: Session,
  from: number | undefined,
  to: number | undefined,
): Promise<void> {
  const { config, target } = session;
  const newest = await config.newest();
  const version = async (number: number | undefined) => {
    const pointer = number === undefined ? newest : await config.version(number);
    return pointer ? config.rows(pointer) : emptyRows;
  };
  const before = await version(from);
  const after = from === undefined ? await config.tables() : await version(to);
  const changes = changesBetween(before, after);
  const bad = badRows(findingsIn(after, target));
  if (session.json) return sayChangesJson(changes, bad);
  const name = (number: number | undefined) => `version ${number ?? newest?.version ?? 'none'}`;
  say(`from ${name(from)} to ${from === undefined ? 'the tables' : name(to)}:`);
  sayChanges(changes, bad);
  if (changes.length === 0) say('no difference.');
}
