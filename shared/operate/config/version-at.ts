/** Finds the version of the configuration that served at a time. */
import { isoTime } from '../../wire/iso-time.ts';
import type { PublishedVersion } from '../config-versions.ts';
import { usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';

/** Throws a Failure if none is kept that is so old. */
export async function versionAt(
  { config, clock }: Pick<OperatorPorts, 'clock' | 'config'>,
  atMs: number,
): Promise<PublishedVersion> {
  if (atMs > clock.now()) throw usageFailure(`--to ${isoTime(atMs)}: wanted a time before now`);
  const versions = await config.versions({ sinceMs: atMs });
  const found = versions.find(({ publishedAt }) => publishedAt * 1000 <= atMs);
  if (found) return found;
  const oldest = versions.at(-1);
  throw usageFailure(
    oldest
      ? `nothing that served at ${isoTime(atMs)} is kept: the oldest is version ${oldest.version}, published ${isoTime(oldest.publishedAt * 1000)}`
      : 'nothing was published yet',
  );
}
