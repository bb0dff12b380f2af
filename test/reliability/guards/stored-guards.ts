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
    file: 'shared/relay/stored/follow.ts',
    find: 'else if (from + i === position + frames.length + 1 && from',
    replace: 'else if (from',
    test: follow,
    name: 'gives before and after a cut what the uncut stream gives, at every cut, while it runs and afterwards',
  },
  {
    rows: ['F24'],
    file: 'shared/relay/stored/follow.ts',
    find: "      delivery.cut('deadline');\n      break;",
    replace: '      break;',
    test: follow,
    name: 'breaks the connection when the host is about to end, and the client goes on from there',
  },
  {
    rows: ['F25'],
    file: 'shared/adapters/dynamodb/responses/response-store.ts',
    find: 'const condition = joinConditions(isBackground, `(${isQueued} OR (${isInProgress} AND ${isOwn}))`);',
    replace:
      'const condition = joinConditions(isBackground, `(${isQueued} OR ${isInProgress} OR ${isOwn})`);',
    test: runs,
    ranBy: stores,
    name: 'lets one of two runs claim a response, and that one again',
  },
  {
    rows: ['F25'],
    file: 'shared/relay/stored/run-recorder.ts',
    find: "if (!mayWrite()) throw new StoreBusy('no claim');",
    replace: '',
    test: writer,
    name: 'no more once the claim has passed: a run that was paused writes nothing',
  },
  {
    rows: ['F25'],
    file: 'shared/relay/stored/reads.ts',
    find: 'const waits = background.run !== undefined && atSeconds <= background.until + graceSeconds;',
    replace: 'const waits = true;',
    test: follow,
    name: 'comes at once when the response was cancelled before its run',
  },
  {
    rows: ['F26'],
    file: 'shared/relay/stored/run-recorder.ts',
    find: 'isBroken = !mayPass(error) || clock.now() >= triedUntilMs;',
    replace: 'isBroken = true;',
    test: writer,
    name: 'in order and once each while the store refuses now and then, and loses replies',
  },
  {
    rows: ['F26'],
    file: 'shared/relay/stored/run-recorder.ts',
    find: 'countStoredEvents(events, of).catch(() => Math.max(keptCount, 1))',
    replace: 'Promise.resolve(Math.max(keptCount, 1))',
    test: writer,
    name: 'also where the last reply was lost and no other came: what is there counts',
  },
  {
    rows: ['S31'],
    file: 'shared/adapters/dynamodb/responses/response-store.ts',
    find: 'const asked = ids.filter(isResponseId);\n      const found',
    replace: 'const asked = ids;\n      const found',
    test: responses,
    ranBy: stores,
    name: 'finds nothing under ids that are none',
  },
  {
    rows: ['S32'],
    file: 'shared/adapters/dynamodb/responses/response-items.ts',
    find: "item['expires'] > this.now() &&",
    replace: '',
    test: responses,
    ranBy: stores,
    name: 'returns nothing that has expired, and removes nothing then',
  },
  {
    rows: ['S32'],
    file: 'shared/adapters/dynamodb/responses/response-store.ts',
    find: "const reply = await putHead(item, 'attribute_not_exists(id)');",
    replace: 'const reply = await putHead(item);',
    test: responses,
    ranBy: stores,
    name: 'writes a response once: a late try of its put brings back neither what was removed nor what it was',
  },
  {
    rows: ['S32'],
    file: 'shared/relay/stored/follow.ts',
    find: 'const isOver = end !== undefined && Math.floor(clock.now() / 1000) >= eventsUntil;',
    replace: 'const isOver = false;',
    test: follow,
    name: 'is older than events are kept, of whatever end',
  },
  {
    rows: ['S33'],
    file: 'shared/relay/stored/follow.ts',
    find: '        await delivery.awaitRoom();\n',
    replace: '',
    test: follow,
    name: 'holds little of a long answer for a client that reads slowly, and breaks off one that takes nothing',
  },
  {
    rows: ['S34'],
    file: 'shared/relay/stored/conversation.ts',
    find: 'if (others.size > referredMax) throw',
    replace: 'if (others.size > referredMax * 100) throw',
    test: 'test/unit/relay/stored/stored-conversation.test.ts',
    name: 'name 128 responses at most, refused before any is read',
  },
  {
    rows: ['S34'],
    file: 'shared/relay/stored/reads.ts',
    find: 'if (length > this.#left)',
    replace: 'if (length > this.#left * 100)',
    test: 'test/unit/relay/stored/stored-conversation.test.ts',
    name: 'are refused by their lengths, before any is unpacked',
  },
  {
    rows: ['S34'],
    file: 'shared/relay/stored/reads.ts',
    find: 'if (this.#room?.take(length) === false)',
    replace: 'if (this.#room?.take(length) === undefined && length < 0)',
    test: 'test/unit/relay/stored/stored-paths.test.ts',
    name: 'take the bytes that they unpack in the room of their host, and are refused while there is none',
  },
];
