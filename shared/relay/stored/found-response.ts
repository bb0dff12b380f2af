/**
 * A response as its readers find it. Must never ask the store for what has not the form of an id: sort keys have other
 * forms beside it.
 */
import type { ChatPorts } from '../call/chat-ports.ts';
import type { RelayRequest, RelayResponse } from '../http/http.ts';
import { refuse, type Refusal } from '../http/refusal.ts';
import { Backoff } from '../money/backoff.ts';
import type { StoredResponse } from '../ports/stored/stored-response.ts';
import type { AskedStored } from './stored-caller.ts';
import { foundEnd } from './run-end.ts';

const storedId = /^resp-[0-9a-z]{26}$/;
/** How long a store that throttles is asked again, while a client waits. */
const storeMsMax = 2_000;

export const isStoredId = (id: string): boolean => storedId.test(id);

/** The same whatever the reason, and of any text that was sent as an id. */
export const noSuchResponse = (id: string): Refusal =>
  refuse('response_not_found', `Response with id '${id.slice(0, 64)}' not found.`, { param: 'id' });

export type ReadPorts = Pick<ChatPorts, 'clock' | 'random' | 'stored'>;

/** A call of the store that is safe to repeat. Throws StoreUnavailable. */
export const asked = <T>(ports: ReadPorts, call: () => Promise<T>): Promise<T> =>
  new Backoff(ports, storeMsMax).until(call);

/** One whose run is dead is found failed. Throws a Refusal or StoreUnavailable. */
export async function foundResponse(
  ports: ReadPorts,
  account: string,
  { id, reads }: Pick<AskedStored, 'id' | 'reads'>,
): Promise<StoredResponse> {
  const { clock, stored } = ports;
  const read = async (): Promise<StoredResponse> => {
    reads.release();
    const found = await asked(ports, () => stored.responses.read(account, [id], reads.admit));
    const response = found.get(id);
    if (!response) throw noSuchResponse(id);
    return response;
  };
  const { head, body } = await read();
  const nowSeconds = Math.floor(clock.now() / 1000);
  const end = await asked(ports, () => foundEnd(stored, head, nowSeconds));
  // A run that stood still may have ended meanwhile: then its content is newer than what was read.
  return end.status === head.status || end.status === 'failed' ? { head: end, body } : read();
}

/** Content is kept by no cache on its way. */
export const jsonOf = (request: RelayRequest, value: object): RelayResponse => ({
  status: 200,
  headers: {
    'content-type': 'application/json',
    'cache-control': 'no-store',
    'x-request-id': request.id,
  },
  body: JSON.stringify(value),
  done: Promise.resolve(),
});
