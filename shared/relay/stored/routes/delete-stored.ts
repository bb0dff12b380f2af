/** DELETE /v1/responses/{id}: nobody reads it from then on. A run that is answering it notices, and ends. */
import { deletedResponse } from '../../../endpoints/responses/stored/retrieved-response.ts';
import type { RelayResponse } from '../../http/http.ts';
import { asked, jsonOf, noSuchResponse, type ReadPorts } from '../found-response.ts';
import type { AskedStored, StoredCaller } from '../stored-caller.ts';

/** Throws a Refusal or StoreUnavailable. */
export async function deleteStored(
  ports: ReadPorts,
  { key: { account } }: StoredCaller,
  { id, request }: AskedStored,
): Promise<RelayResponse> {
  const { responses } = ports.stored;
  const heads = await asked(ports, () => responses.heads(account, [id]));
  // Also without a head: a try before this one may have come so far. One that is repeated finds nothing, and it is deleted.
  await asked(ports, () => responses.remove(account, id));
  if (!heads.has(id)) throw noSuchResponse(id);
  return jsonOf(request, deletedResponse(id));
}
