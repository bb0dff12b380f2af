/** The public read endpoints (models, charge, plans, health, the page) and an account's own, answered in one piece. */
import { dynamoAccountReader } from '../shared/adapters/dynamodb/ledger/dynamo-account-reader.ts';
import { systemClock } from '../shared/adapters/system/system-clock.ts';
import { documentClient } from '../shared/adapters/dynamodb/dynamo-client.ts';
import { bufferedHandler } from '../shared/adapters/lambda/buffered-handler.ts';
import { trapRejections } from '../shared/adapters/lambda/trap-rejections.ts';
import { readEnvironment } from '../shared/adapters/system/environment.ts';
import { timeSortedIds } from '../shared/adapters/system/time-sorted-ids.ts';
import { dynamoKeyStore } from '../shared/adapters/dynamodb/dynamo-key-store.ts';
import { jsonLog } from '../shared/adapters/telemetry/json-log.ts';
import { runtimeView } from '../shared/adapters/dynamodb/runtime/dynamo-config-source.ts';
import { account } from '../shared/relay/account/account-handle.ts';
import { catalog } from '../shared/relay/catalog/catalog-handle.ts';
import { withCors } from '../shared/relay/http/cors.ts';

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
