/** Opens the operators' ports over the tables of a target. Prints nothing: every face opens its work with this. */
import type { Command } from 'commander';
import { dynamoConfigVersions } from '../../../shared/adapters/dynamodb/runtime/dynamo-config-versions.ts';
import { dynamoLedgerReader } from '../../../shared/adapters/dynamodb/ledger/dynamo-ledger-reader.ts';
import { dynamoRowTables } from '../../../shared/adapters/dynamodb/dynamo-row-tables.ts';
import { awsAccessOf, openStore } from '../../../shared/adapters/dynamodb/operator-client.ts';
import { awsSecretWriter } from '../../../shared/adapters/secrets/aws-secret-writer.ts';
import { newSecretKey, randomHex } from '../../../shared/adapters/system/secret-keys.ts';
import { systemClock } from '../../../shared/adapters/system/system-clock.ts';
import { findBaseUrl } from '../../../shared/adapters/transport/stack-base-url.ts';
import { upstreamTransport } from '../../../shared/adapters/transport/https-upstream-transport.ts';
import type { OperatorPorts, Target } from '../../../shared/operate/operator-ports.ts';
import { explainStoreError } from './store-error.ts';
import { surroundings } from '../cli/terminal/process-context.ts';
import { remark, say } from '../cli/terminal/terminal.ts';
import { describeTarget, resolveTarget } from './target.ts';

export interface OpenedSession {
  ports: OperatorPorts;
  /** Undefined: the environment names none, and every read will fail. */
  region: string | undefined;
}

export async function openSession(target: Target, environment: NodeJS.ProcessEnv): Promise<OpenedSession> {
  const explain = (error: unknown, where?: string) => explainStoreError(error, target, where);
  const store = await openStore(target, explain);
  const tables = dynamoRowTables(store);
  const ports: OperatorPorts = {
    target,
    clock: systemClock,
    random: { secretKey: newSecretKey, hex: randomHex },
    tables,
    ledger: dynamoLedgerReader(store),
    config: dynamoConfigVersions(store, tables),
    secrets: awsSecretWriter({ target, environment, explain }),
    upstreams: upstreamTransport(target),
    baseUrl: () => findBaseUrl({ ...target, environment, aws: () => awsAccessOf(store) }),
  };
  return { ports, region: store.region };
}

// Until every command opens its ports through its context: what follows goes with its last users.
export interface Session extends OperatorPorts {
  json: boolean;
  csv: boolean;
}

export async function openPrintingSession(command: Command): Promise<Session> {
  const options = command.optsWithGlobals<{ stack?: string; json?: boolean; csv?: boolean }>();
  const target = resolveTarget(options.stack, surroundings.environment);
  const { ports, region } = await openSession(target, surroundings.environment);
  const { json = false, csv = false } = options;
  (json || csv ? remark : say)(describeTarget(target, region, surroundings.environment));
  return { ...ports, json, csv };
}
