/** GET /v1/responses/{id}/input_items: what a response was made of, the turns before it included. */
import { inputItemPage, pageAsked } from '../../../endpoints/responses/stored/input-item-page.ts';
import type { JsonRecord } from '../../../wire/json-record.ts';
import { storedReading } from '../../../endpoints/responses/stored-input.ts';
import { InvalidRequest } from '../../../wire/invalid-request.ts';
import type { RelayResponse } from '../../http/http.ts';
import { Refusal } from '../../http/refusal.ts';
import type { ResponseHead, StoredResponse } from '../../ports/stored/stored-response.ts';
import { conversationOf } from '../stored-conversation.ts';
import { asked, foundResponse, jsonOf, type ReadPorts } from '../found-response.ts';
import type { AskedStored, StoredCaller } from '../stored-caller.ts';
import type { StoredReads } from '../stored-reads.ts';

/** How many turns are read at once: most pages end within few. */
const turnsAtOnce = 8;

/** Throws a Refusal, an InvalidRequest or StoreUnavailable. */
export async function listInputItems(
  ports: ReadPorts,
  { key: { account } }: StoredCaller,
  { id, request, reads }: AskedStored,
): Promise<RelayResponse> {
  const page = pageAsked(request.query);
  const response = await foundResponse(ports, account, { id, reads });
  const newestFirst = itemsBefore({ ...ports, reads }, response);
  const items = page.order === 'desc' ? newestFirst : oldestFirst(newestFirst);
  return jsonOf(request, await inputItemPage(items, page));
}

interface BoundedReads extends ReadPorts {
  reads: StoredReads;
}

/** Of a conversation whose beginning is deleted or has expired, what is left. */
async function* itemsBefore(ports: BoundedReads, { head, body }: StoredResponse): AsyncGenerator<JsonRecord> {
  yield* (await inputOf(ports, turnOf({ head, body }))).toReversed();
  let ancestors = head.ancestors;
  while (ancestors.length > 0) {
    const ids = ancestors.slice(0, turnsAtOnce);
    const { responses } = ports.stored;
    const turns = await asked(ports, () => responses.readEach(head.account, ids, turnOf, ports.reads.admit));
    for (const id of ids) {
      const turn = turns.get(id);
      if (!turn) return;
      yield* turn.output.toReversed();
      yield* (await inputOf(ports, turn)).toReversed();
      ancestors = turn.head.ancestors;
    }
  }
}

/** The items of a turn's request. A reference to what nobody can read any more stays one. */
async function inputOf(ports: BoundedReads, { head, input: all }: Turn): Promise<readonly JsonRecord[]> {
  const input = all.filter(isReference);
  const references = input.length > 0 && storedReading.references({ input });
  if (!references) return all;
  const { referred } = await asked(ports, () =>
    conversationOf(ports, head.account, references, ports.reads).catch((error: unknown) => {
      if (error instanceof Refusal || error instanceof InvalidRequest) return { referred: new Map() };
      throw error;
    }),
  );
  return all.map((item) => (isReference(item) ? (referred.get(String(item['id']))?.item ?? item) : item));
}

const isReference = (item: JsonRecord): boolean => item['type'] === 'item_reference';

/** What is listed of a response; it also repeats the tools and the instructions of its request. */
interface Turn {
  head: ResponseHead;
  input: readonly JsonRecord[];
  output: readonly JsonRecord[];
}

const turnOf = ({ head, body: { input, response } }: StoredResponse): Turn => ({
  head,
  input,
  output: Array.isArray(response['output']) ? (response['output'] as JsonRecord[]) : [],
});

/** The oldest item is found last. A conversation has a bound of some megabytes. */
async function* oldestFirst(newestFirst: AsyncIterable<JsonRecord>): AsyncGenerator<JsonRecord> {
  const items = await Array.fromAsync(newestFirst);
  yield* items.toReversed();
}
