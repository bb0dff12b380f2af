import type { ChannelRow } from '../../config/rows/channel-row.ts';
import { secretsOf } from '../../config/compile/read-channel.ts';
import { fromEnvironment } from '../../adapters/secrets/aws-secret-writer.ts';
import type { Session } from '../../../infra/ops/session/session.ts';
import { surroundings } from '../../../infra/ops/cli/terminal/process-context.ts';

/**
 * The first key of a channel, as its upstream gets it; undefined: it has none. Throws a Failure when it cannot be read.
 * @param secretEnv an environment variable that has it, instead of the reference
 */
export async function channelSecret(
  session: Session,
  channel: ChannelRow,
  secretEnv: string | undefined,
): Promise<string | undefined> {
  if (secretEnv !== undefined) return fromEnvironment(surroundings.environment, secretEnv);
  const [reference] = secretsOf(channel);
  return reference === undefined ? undefined : session.secrets.read(reference);
}
