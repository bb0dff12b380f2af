/** The public read endpoints (models, charge, plans, health, the page) and an account's own, answered in one piece. */
import { dynamoAccountReader } from '../shared/adapters/account-reader.ts';
import { systemClock } from '../shared/adapters/clock.ts';
import { documentClient } from '../shared/adapters/dynamo.ts';
import { bufferedHandler } from '../shared/adapters/edge/buffered-handler.ts';
import { trapRejections } from '../shared/adapters/edge/trap-rejections.ts';
import { readEnvironment } from '../shared/adapters/environment.ts';
import { timeSortedIds } from '../shared/adapters/ids.ts';
import { dynamoKeyStore } from '../shared/adapters/key-store.ts';
import { jsonLog } from '../shared/adapters/log.ts';
import { runtimeView } from '../shared/adapters/runtime-view.ts';
import { account } from '../shared/relay/account.ts';
import { catalog } from '../shared/relay/catalog.ts';
import { withCors } from '../shared/relay/cors.ts';

const environment = readEnvironment();
const clock = systemClock;
const log = jsonLog(environment.version);
trapRejections(log);

const { stack, version } = environment;
const client = documentClient(environment.aws);
const { config } = runtimeView({ client, clock, log, stack });
const keys = dynamoKeyStore({ client, clock, stack });
const accounts = dynamoAccountReader(client, stack);
const accountHandle = account({ config, keys, accounts, clock, log });
const handle = withCors(catalog({ config, clock, log, version, account: accountHandle }), config);

export const handler = bufferedHandler({ handle, environment, clock, log, ids: timeSortedIds(clock) });
