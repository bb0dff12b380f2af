/**
 * A second look at what a refusal was decided from. Clients take some refusals as final, so these are not given from an
 * old configuration or an old key. Loaded by the first such refusal.
 */
import { StorageNotAllowed } from '../../wire/invalid-request.ts';
import { Refusal } from '../http/refusal.ts';
import type { ChatCall } from './call.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';

/** How old a key may be that refuses a model. */
const keyAgeMsMax = 5_000;
/** The same of what forbids to store: another environment may have just stored what the request goes on from. */
const storageAgeMsMax = 1_000;
/**
 * The same of the configuration that has no such model: whoever adds one calls it as soon as the list has it. Names that
 * callers invent so cost an environment one read a second.
 */
const modelsAgeMsMax = 1_000;

interface Refused {
  error: unknown;
  /** As the client sent it. */
  key: string;
  /** What the checks have seen. */
  seen: Pick<ChatCall, 'key' | 'snapshot'>;
}

/**
 * Whether what the refusal was decided from is another one by now, so that the checks are worth a repeat. The checks then
 * find it: the stores of keys and of the configuration keep it. Throws StoreUnavailable when it cannot be read.
 */
export async function hasChanged(ports: ChatPorts, { error, key, seen }: Refused): Promise<boolean> {
  const isOtherKey = async (ageMsMax: number): Promise<boolean> => {
    const lookup = await ports.keys.find(key, ageMsMax);
    return !('row' in lookup) || lookup.row !== seen.key;
  };
  if (error instanceof StorageNotAllowed)
    return (
      (await isOtherKey(storageAgeMsMax)) ||
      (await ports.config.notOlderThan(storageAgeMsMax)) !== seen.snapshot
    );
  if (!(error instanceof Refusal)) return false;
  const { code } = error.body.error;
  if (code === 'model_not_found') return (await ports.config.notOlderThan(modelsAgeMsMax)) !== seen.snapshot;
  if (code !== 'model_not_allowed' && code !== 'official_not_allowed') return false;
  return isOtherKey(keyAgeMsMax);
}
