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
    name: 'is rejected at the limit of its key a minute without a read of the store',
  },
  {
    rows: ['F24'],
    file: 'shared/relay/stored/follow.ts',
    find: 'else if (from + i === position + frames.length + 1 && from',
    replace: 'else if (from',
    test: follow,
    name: 'gets the uncut stream around a cut at any event, during the run and after it',
  },
  {
    rows: ['F24'],
    file: 'shared/relay/stored/follow.ts',
    find: "      delivery.cut('deadline');\n      break;",
    replace: '      break;',
    test: follow,
    name: 'is cut off before its host ends and can continue from there',
  },
  {
    rows: ['F25'],
    file: 'shared/adapters/dynamodb/responses/response-store.ts',
    find: 'const condition = joinConditions(isBackground, `(${isQueued} OR (${isInProgress} AND ${isOwn}))`);',
    replace:
      'const condition = joinConditions(isBackground, `(${isQueued} OR ${isInProgress} OR ${isOwn})`);',
    test: runs,
    ranBy: stores,
    name: 'lets only one of two runs claim a response, and lets that run claim it again',
  },
  {
    rows: ['F25'],
    file: 'shared/relay/stored/run-recorder.ts',
    find: "if (!mayWrite()) throw new StoreBusy('no claim');",
    replace: '',
    test: writer,
    name: 'stops when its claim expires: a run that was paused writes nothing',
  },
  {
    rows: ['F25'],
    file: 'shared/relay/stored/reads.ts',
    find: 'const waits = background.run !== undefined && atSeconds <= background.until + graceSeconds;',
    replace: 'const waits = true;',
    test: follow,
    name: 'comes at once if the response was cancelled before its run',
  },
  {
    rows: ['F26'],
    file: 'shared/relay/stored/run-recorder.ts',
    find: 'isBroken = !mayPass(error) || clock.now() >= triedUntilMs;',
    replace: 'isBroken = true;',
    test: writer,
    name: 'stores events in order and once each while the store rejects writes and loses replies',
  },
  {
    rows: ['F26'],
    file: 'shared/relay/stored/run-recorder.ts',
    find: 'countStoredEvents(events, of).catch(() => Math.max(keptCount, 1))',
    replace: 'Promise.resolve(Math.max(keptCount, 1))',
    test: writer,
    name: 'counts the stored events even if the last reply was lost',
  },
  {
    rows: ['S31'],
    file: 'shared/adapters/dynamodb/responses/response-store.ts',
    find: 'const asked = ids.filter(isResponseId);\n      const found',
    replace: 'const asked = ids;\n      const found',
    test: responses,
    ranBy: stores,
    name: 'finds nothing under invalid ids',
  },
  {
    rows: ['S32'],
    file: 'shared/adapters/dynamodb/responses/response-items.ts',
    find: "item['expires'] > this.now() &&",
    replace: '',
    test: responses,
    ranBy: stores,
    name: 'neither returns nor deletes expired responses',
  },
  {
    rows: ['S32'],
    file: 'shared/adapters/dynamodb/responses/response-store.ts',
    find: "const reply = await putHead(item, 'attribute_not_exists(id)');",
    replace: 'const reply = await putHead(item);',
    test: responses,
    ranBy: stores,
    name: 'writes a response once: a late retry of its put restores neither a deleted nor an older response',
  },
  {
    rows: ['S32'],
    file: 'shared/relay/stored/follow.ts',
    find: 'const isOver = end !== undefined && Math.floor(clock.now() / 1000) >= eventsUntil;',
    replace: 'const isOver = false;',
    test: follow,
    name: 'is rejected once the events have expired, however the response ended',
  },
  {
    rows: ['S33'],
    file: 'shared/relay/stored/follow.ts',
    find: '        await delivery.awaitRoom();\n',
    replace: '',
    test: follow,
    name: 'gets a long answer with little buffering if it is slow, and is cut off if it reads nothing',
  },
  {
    rows: ['S34'],
    file: 'shared/relay/stored/conversation.ts',
    find: 'if (others.size > referredMax) throw',
    replace: 'if (others.size > referredMax * 100) throw',
    test: 'test/unit/relay/stored/stored-conversation.test.ts',
    name: 'to more than 128 responses are rejected before any read',
  },
  {
    rows: ['S34'],
    file: 'shared/relay/stored/reads.ts',
    find: 'if (length > this.#left)',
    replace: 'if (length > this.#left * 100)',
    test: 'test/unit/relay/stored/stored-conversation.test.ts',
    name: 'are rejected by their lengths before any is unpacked',
  },
  {
    rows: ['S34'],
    file: 'shared/relay/stored/reads.ts',
    find: 'if (this.#room?.take(length) === false)',
    replace: 'if (this.#room?.take(length) === undefined && length < 0)',
    test: 'test/unit/relay/stored/stored-paths.test.ts',
    name: 'reserve the memory of their host, and are rejected while there is none',
  },
];
