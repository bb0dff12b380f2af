/** Opens the operators' ports for the tables of a target. Every face uses it; it prints nothing. */
import { insightsCallLog } from '../../../shared/adapters/account/insights-call-log.ts';
import { callerIdentity } from '../../../shared/adapters/account/caller-identity.ts';
import { signedAwsAccount } from '../../../shared/adapters/account/signed-aws-account.ts';
import { dynamoConfigVersions } from '../../../shared/adapters/dynamodb/runtime/dynamo-config-versions.ts';
import { dynamoLedgerReader } from '../../../shared/adapters/dynamodb/ledger/dynamo-ledger-reader.ts';
import { dynamoResponseRows } from '../../../shared/adapters/dynamodb/responses/dynamo-response-rows.ts';
import { explainedPaymentStore } from '../../../shared/adapters/dynamodb/ledger/dynamo-payment-store.ts';
import { dynamoRowPages } from '../../../shared/adapters/dynamodb/ledger/dynamo-row-pages.ts';
import { dynamoRowTables } from '../../../shared/adapters/dynamodb/dynamo-row-tables.ts';
import {
  awsAccessOf,
  localStackOf,
  openStore,
  tableLimitsOf,
} from '../../../shared/adapters/dynamodb/operator-client.ts';
import { rowAuthor } from '../../../shared/adapters/dynamodb/row-author.ts';
import { awsSecretWriter } from '../../../shared/adapters/secrets/aws-secret-writer.ts';
import { nodeHmac } from '../../../shared/adapters/system/node-hmac.ts';
import { newSecretKey, randomHex } from '../../../shared/adapters/system/secret-keys.ts';
import { systemClock } from '../../../shared/adapters/system/system-clock.ts';
import { findBaseUrl, findLogGroups } from '../../../shared/adapters/aws/stack-base-url.ts';
import { httpsUpstreamTransport } from '../../../shared/adapters/transport/https-upstream-transport.ts';
import type { Failure } from '../../../shared/operate/operator-failure.ts';
import type { OperatorPorts } from '../../../shared/operate/operator-ports.ts';
import { explainStoreError } from './store-error.ts';
import type { SessionTarget } from './target.ts';

export interface OpenedSession {
  ports: OperatorPorts;
  /** Undefined: the environment sets no region, so every read fails. */
  region: string | undefined;
}

/** @param explainDenied a Failure for an error that means that the credentials do not allow it, else undefined */
export async function openSession(
  { region, profile, ...target }: SessionTarget,
  environment: NodeJS.ProcessEnv,
  explainDenied: (error: unknown, region: string | undefined) => Failure | undefined = () => undefined,
): Promise<OpenedSession> {
  const explain = (error: unknown, where?: string): Failure =>
    explainDenied(error, store.region) ?? explainStoreError(error, target, where);
  const place = { ...(region !== undefined && { region }), ...(profile !== undefined && { profile }) };
  const store = await openStore(target, explain, place);
  const caller = { stack: target.stack, environment, aws: () => awsAccessOf(store) };
  const accessKey = async () => (await store.explained(store.client.config.credentials())).accessKeyId;
  const operator = target.local ? async () => 'local' : callerIdentity(caller, accessKey);
  const author = rowAuthor(operator);
  const ports: OperatorPorts = {
    target,
    clock: systemClock,
    random: { secretKey: newSecretKey, hex: randomHex },
    hmac: nodeHmac,
    tables: dynamoRowTables(store, author),
    pages: dynamoRowPages(store),
    ledger: dynamoLedgerReader(store),
    traffic: store.traffic,
    payments: explainedPaymentStore(store, author),
    responses: dynamoResponseRows(store, systemClock),
    config: dynamoConfigVersions(store),
    secrets: awsSecretWriter({ target, place, environment, explain }),
    upstreams: httpsUpstreamTransport(target),
    baseUrl: async () => (target.local ? (await localStackOf(store)).baseUrl : findBaseUrl(caller)),
    log: insightsCallLog({
      ...caller,
      explain,
      place: () =>
        target.local
          ? localStackOf(store).then(({ log }) => log)
          : findLogGroups(caller).catch((error: unknown) => {
              throw explain(error, 'CloudFormation');
            }),
    }),
    operator,
    account: signedAwsAccount({ ...caller, explain, tableLimits: () => tableLimitsOf(store) }),
  };
  return { ports, region: store.region };
}
