import type { ChannelRow } from '../../config/rows/channel-row.ts';
import { secretsOf } from '../../config/compile/read-channel.ts';
import type { Session } from '../../../infra/ops/session/session.ts';

/**
 * The first key of a channel, as its upstream gets it; undefined: it has none. Throws a Failure when it cannot be read.
 * @param secretEnv an environment variable that has it, instead of the reference
 */
export async function channelSecret(
  session: Session,
  channel: ChannelRow,
  secretEnv: string | undefined,
): Promise<string | undefined> {
  if (secretEnv !== undefined) return session.secrets.read(`env:${secretEnv}`);
  const [reference] = secretsOf(channel);
  return reference === undefined ? undefined : session.secrets.read(reference);
}
