import type { Removal } from '../removal.ts';

const follow = 'test/unit/relay/stored/events/follow.test.ts';
const writer = 'test/unit/relay/stored/events/event-writer.test.ts';
const runs = 'test/contract/stored-runs.ts';
const stores = 'test/contract/stored-stores.test.ts';
const responses = 'test/contract/stored-responses.ts';

/** Guards of stored and background responses. */
export const storedGuards: readonly Removal[] = [
  {
    rows: ['S19'],
    file: 'shared/relay/money/bill.ts',
    find: 'const rateCount = admitted.request && (await reservations.admit(admitted.request));',
    replace: 'const rateCount = admitted.request && undefined;',
    test: 'test/unit/relay/stored/refused-unread.test.ts',
    name: 'is refused for what its key asked in this minute, and the store is not asked',
  },
  {
    rows: ['F24'],
    file: 'shared/relay/stored/events/follower.ts',
    find: 'else if (from + i === this.#position + 1 && from + i < limit) {',
    replace: 'else if (from + i < limit) {',
    test: follow,
    name: 'gives before and after a cut what the uncut stream gives, at every cut, while it runs and afterwards',
  },
  {
    rows: ['F24'],
    file: 'shared/relay/stored/events/follow.ts',
    find: "      delivery.cut('deadline');\n      break;",
    replace: '      break;',
    test: follow,
    name: 'breaks the connection when the host is about to end, and the client goes on from there',
  },
  {
    rows: ['F25'],
    file: 'shared/adapters/dynamodb/responses/dynamo-run-store.ts',
    find: 'const condition = all(isBackground, `(${isQueued} OR (${isInProgress} AND ${isOwn}))`);',
    replace: 'const condition = all(isBackground, `(${isQueued} OR ${isInProgress} OR ${isOwn})`);',
    test: runs,
    ranBy: stores,
    name: 'lets one of two runs claim a response, and that one again',
  },
  {
    rows: ['F25'],
    file: 'shared/relay/stored/events/event-writer.ts',
    find: "if (!mayWrite()) throw new StoreBusy('no claim');",
    replace: '',
    test: writer,
    name: 'no more once the claim has passed: a run that was paused writes nothing',
  },
  {
    rows: ['F25'],
    file: 'shared/relay/stored/run-end.ts',
    find: 'const waits = background.run !== undefined && nowSeconds <= background.until + graceSeconds;',
    replace: 'const waits = true;',
    test: follow,
    name: 'comes at once when the response was cancelled before its run',
  },
  {
    rows: ['F26'],
    file: 'shared/relay/stored/events/event-writer.ts',
    find: 'if (clock.now() >= this.#triedUntilMs) return this.#break();',
    replace: 'return this.#break();',
    test: writer,
    name: 'in order and once each while the store refuses now and then, and loses replies',
  },
  {
    rows: ['F26'],
    file: 'shared/relay/stored/events/event-writer.ts',
    find: 'if (!this.#unanswered) return certain;',
    replace: 'return certain;',
    test: writer,
    name: 'also where the last reply was lost and no other came: what is there counts',
  },
  {
    rows: ['S31'],
    file: 'shared/adapters/dynamodb/responses/dynamo-response-store.ts',
    find: 'const asked = { ids: ids.filter(isResponseId), attributes: headAttributes };',
    replace: 'const asked = { ids, attributes: headAttributes };',
    test: responses,
    ranBy: stores,
    name: 'finds nothing under ids that are none',
  },
  {
    rows: ['S32'],
    file: 'shared/adapters/dynamodb/responses/response-items.ts',
    find: "typeof item?.['expires'] === 'number' && item['expires'] > now && item",
    replace: "typeof item?.['expires'] === 'number' && item",
    test: responses,
    ranBy: stores,
    name: 'returns nothing that has expired, and removes nothing then',
  },
  {
    rows: ['S32'],
    file: 'shared/adapters/dynamodb/responses/dynamo-response-store.ts',
    find: "const reply = await putHead(table, item, 'attribute_not_exists(id)');",
    replace: 'const reply = await putHead(table, item);',
    test: responses,
    ranBy: stores,
    name: 'writes a response once: a late try of its put brings back neither what was removed nor what it was',
  },
  {
    rows: ['S32'],
    file: 'shared/relay/stored/events/follow.ts',
    find: 'if (end !== undefined && nowSeconds >= keptUntil) throw noLongerKept(eventMinutes);',
    replace: '',
    test: follow,
    name: 'is older than events are kept, of whatever end',
  },
  {
    rows: ['S33'],
    file: 'shared/relay/stored/events/follow.ts',
    find: '        await delivery.room();\n',
    replace: '',
    test: follow,
    name: 'holds little of a long answer for a client that reads slowly, and breaks off one that takes nothing',
  },
  {
    rows: ['S33'],
    file: 'shared/relay/stored/events/follower-place.ts',
    find: 'if (last - place >= followersMax) return true;',
    replace: 'void last;',
    test: follow,
    name: 'breaks off the oldest of more than 16 followers, also one that waits for its client; each goes on from there',
  },
];
