/** GET /v1/responses/{id}/input_items: what a response was made of, the turns before it included. */
import { inputItemPage, pageAsked } from '../../endpoints/responses/stored/input-item-page.ts';
import type { JsonRecord } from '../../wire/json-record.ts';
import type { RelayResponse } from '../http/http.ts';
import type { StoredResponse } from '../ports/stored/stored-response.ts';
import { asked, foundResponse, jsonOf, type ReadPorts } from './found-response.ts';
import type { AskedStored, StoredCaller } from './stored-caller.ts';

/** How many turns are read at once: most pages end within few. */
const turnsAtOnce = 8;

/** Throws a Refusal, an InvalidRequest or StoreUnavailable. */
export async function listInputItems(
  ports: ReadPorts,
  { key: { account } }: StoredCaller,
  { id, request }: AskedStored,
): Promise<RelayResponse> {
  const page = pageAsked(request.query);
  const response = await foundResponse(ports, account, id);
  const newestFirst = itemsBefore(ports, response);
  const items = page.order === 'desc' ? newestFirst : oldestFirst(newestFirst);
  return jsonOf(request, await inputItemPage(items, page));
}

/** Of a conversation whose beginning is deleted or has expired, what is left. */
async function* itemsBefore(ports: ReadPorts, { head, body }: StoredResponse): AsyncGenerator<JsonRecord> {
  yield* body.input.toReversed();
  let ancestors = head.ancestors;
  while (ancestors.length > 0) {
    const ids = ancestors.slice(0, turnsAtOnce);
    const turns = await asked(ports, () => ports.stored.responses.read(head.account, ids));
    for (const id of ids) {
      const turn = turns.get(id);
      if (!turn) return;
      yield* outputOf(turn).toReversed();
      yield* turn.body.input.toReversed();
      ancestors = turn.head.ancestors;
    }
  }
}

const outputOf = ({ body: { response } }: StoredResponse): readonly JsonRecord[] =>
  Array.isArray(response['output']) ? response['output'] : [];

/** The oldest item is found last. A conversation has a bound of some megabytes. */
async function* oldestFirst(newestFirst: AsyncIterable<JsonRecord>): AsyncGenerator<JsonRecord> {
  const items = await Array.fromAsync(newestFirst);
  yield* items.toReversed();
}
