/** The models that cannot answer at the moment, for the page. */
import type { Snapshot } from '../../config/snapshot.ts';
import { candidatesOf } from '../call/serving-channels.ts';
import { HealthRecorder } from '../health/health-recorder.ts';
import type { ChannelHealth } from '../ports/stores/channel-health.ts';
import type { Clock } from '../ports/clock.ts';

/** Those all of whose candidates rest, for whomever calls. Makes no store call. */
export async function restingModels(
  ports: { health: ChannelHealth; clock: Clock },
  { channels, models }: Pick<Snapshot, 'channels' | 'models'>,
): Promise<ReadonlySet<string>> {
  // No account: what is known of one alone is not shown to all.
  const standingOf = await new HealthRecorder(ports).standings('');
  if (standingOf === undefined) return new Set();
  const rests = (model: string): boolean =>
    channels
      .filter((channel) => channel.models.includes(model))
      .flatMap((channel) => candidatesOf(channel, model))
      .every((candidate) => /^(resting|blocked)$/.test(standingOf(candidate)?.is ?? ''));
  return new Set(models.filter(rests));
}
