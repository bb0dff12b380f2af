/** Stream of `grants`, and a slow schedule for what the stream missed: applies every top-up exactly once. */
import { systemClock } from '../shared/adapters/clock.ts';
import { readEnvironment } from '../shared/adapters/environment.ts';
import { dynamoGrantStore } from '../shared/adapters/grant-store.ts';
import { jsonLog } from '../shared/adapters/log.ts';
import { systemRandom } from '../shared/adapters/random.ts';
import { streamClient } from '../shared/adapters/stream-client.ts';
import { streamHandler, streamOrSchedule } from '../shared/adapters/stream-handler.ts';
import { embeddedMetrics } from '../shared/adapters/stream-metrics.ts';
import { grantImageOf } from '../shared/adapters/stream-records.ts';
import { grantKeeper } from '../shared/relay/grant-keeper.ts';

const { stack, version, aws } = readEnvironment();
const log = jsonLog(version);
const metrics = embeddedMetrics(stack);
const grants = dynamoGrantStore(streamClient(aws), stack);
const keeper = grantKeeper({ clock: systemClock, random: systemRandom, grants, metrics, log });

const onRecords = streamHandler({
  read: grantImageOf,
  keep: keeper.keep,
  poisoned: { event: 'grant_poisoned', metric: 'GrantPoisoned' },
  log,
  metrics,
});

export const handler = streamOrSchedule(onRecords, keeper.keepMissed);
