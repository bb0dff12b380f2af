/** GET /v1/responses/{id}: a response as it is now, as its client got it. */
import { includedIn, sealedReasoning } from '../../../endpoints/responses/stored/included.ts';
import { withSeal } from '../../../endpoints/responses/stored/retrieved-response.ts';
import { shownResponse } from '../../../endpoints/responses/stored/shown-response.ts';
import type { RelayResponse } from '../../http/http.ts';
import { foundResponse, jsonOf, type ReadPorts } from '../found-response.ts';
import type { AskedStored, StoredCaller } from '../stored-caller.ts';

/** Throws a Refusal or StoreUnavailable. */
export async function retrieve(
  ports: ReadPorts,
  { key }: StoredCaller,
  asked: AskedStored,
): Promise<RelayResponse> {
  const { head, body } = await foundResponse(ports, key.account, asked);
  const { request } = asked;
  const shown = shownResponse(head.status, body.response);
  const wantsSeal = includedIn(request.query).has(sealedReasoning);
  return jsonOf(request, wantsSeal ? withSeal(shown, body.seal) : shown);
}
