/** Opens the operators' ports for the tables of a target. Every face uses it; it prints nothing. */
import { signedAwsAccount } from '../../../shared/adapters/account/signed-aws-account.ts';
import { dynamoConfigVersions } from '../../../shared/adapters/dynamodb/runtime/dynamo-config-versions.ts';
import { dynamoLedgerReader } from '../../../shared/adapters/dynamodb/ledger/dynamo-ledger-reader.ts';
import { dynamoResponseRows } from '../../../shared/adapters/dynamodb/responses/dynamo-response-rows.ts';
import { explainedPaymentStore } from '../../../shared/adapters/dynamodb/ledger/dynamo-payment-store.ts';
import { dynamoRowTables } from '../../../shared/adapters/dynamodb/dynamo-row-tables.ts';
import { awsAccessOf, openStore, tableLimitsOf } from '../../../shared/adapters/dynamodb/operator-client.ts';
import { awsSecretWriter } from '../../../shared/adapters/secrets/aws-secret-writer.ts';
import { nodeHmac } from '../../../shared/adapters/system/node-hmac.ts';
import { newSecretKey, randomHex } from '../../../shared/adapters/system/secret-keys.ts';
import { systemClock } from '../../../shared/adapters/system/system-clock.ts';
import { findBaseUrl } from '../../../shared/adapters/aws/stack-base-url.ts';
import { httpsUpstreamTransport } from '../../../shared/adapters/transport/https-upstream-transport.ts';
import type { Failure } from '../../../shared/operate/operator-failure.ts';
import type { OperatorPorts, Target } from '../../../shared/operate/operator-ports.ts';
import { explainStoreError } from './store-error.ts';

export interface OpenedSession {
  ports: OperatorPorts;
  /** Undefined: the environment sets no region, so every read fails. */
  region: string | undefined;
}

/** @param explainDenied a Failure for an error that means that the credentials do not allow it, else undefined */
export async function openSession(
  target: Target,
  environment: NodeJS.ProcessEnv,
  explainDenied: (error: unknown, region: string | undefined) => Failure | undefined = () => undefined,
): Promise<OpenedSession> {
  const explain = (error: unknown, where?: string): Failure =>
    explainDenied(error, store.region) ?? explainStoreError(error, target, where);
  const store = await openStore(target, explain);
  const caller = { stack: target.stack, environment, aws: () => awsAccessOf(store) };
  const ports: OperatorPorts = {
    target,
    clock: systemClock,
    random: { secretKey: newSecretKey, hex: randomHex },
    hmac: nodeHmac,
    tables: dynamoRowTables(store),
    ledger: dynamoLedgerReader(store),
    payments: explainedPaymentStore(store),
    responses: dynamoResponseRows(store, systemClock),
    config: dynamoConfigVersions(store),
    secrets: awsSecretWriter({ target, environment, explain }),
    upstreams: httpsUpstreamTransport(target),
    baseUrl: () => findBaseUrl({ ...caller, local: target.local }),
    operator: async () => (await store.explained(store.client.config.credentials())).accessKeyId,
    account: signedAwsAccount({ ...caller, explain, tableLimits: () => tableLimitsOf(store) }),
  };
  return { ports, region: store.region };
}
