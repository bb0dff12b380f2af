import { Failure } from '../operator-failure.ts';
import { findKey } from './find-key.ts';
import type { Session } from '../../../infra/ops/session/session.ts';
import { confirm, say } from '../../../infra/ops/cli/terminal/terminal.ts';

export async function disableKey(
  session: Session,
  written: string,
  options: { yes?: boolean },
): Promise<void> {
  const key = await findKey(session, written);
  await confirm(`Disable ${key.name}?`, options);
  const done = await session.tables.update('keys', key.hash, { enabled: false });
  if (!done) throw new Failure('the row is gone: somebody deleted it, so the key is refused already');
  say(`${key.name} is disabled; the relay refuses it within 30 seconds.`);
}
