import type { Command } from 'commander';
import { ledgerReaderOf } from '../../../shared/adapters/dynamodb/ledger/dynamo-ledger-reader.ts';
import type { LedgerReader } from '../../../shared/operate/ledger-reader.ts';
import { findBaseUrl } from '../../../shared/adapters/transport/stack-base-url.ts';
import { configOf } from '../../../shared/adapters/dynamodb/runtime/dynamo-config-versions.ts';
import type { ConfigStore } from '../../../shared/operate/config-versions.ts';
import { secretsOf } from '../../../shared/adapters/secrets/aws-secret-writer.ts';
import type { Secrets } from '../../../shared/operate/secret-writer.ts';
import { openStore } from '../../../shared/adapters/dynamodb/operator-client.ts';
import { surroundings } from '../cli/terminal/process-context.ts';
import { tablesOf } from '../../../shared/adapters/dynamodb/dynamo-row-tables.ts';
import type { Tables } from '../../../shared/operate/row-tables.ts';
import { describeTarget, resolveTarget } from './target.ts';
import type { Target } from '../../../shared/operate/operator-ports.ts';
import { remark, say } from '../cli/terminal/terminal.ts';

/** What a command works with. */
export interface Session {
  target: Target;
  tables: Tables;
  ledger: LedgerReader;
  config: ConfigStore;
  secrets: Secrets;
  /** What clients set as base URL; undefined: it could not be found out. */
  baseUrl(): Promise<string | undefined>;
  /** Print results as JSON. */
  json: boolean;
  /** Print results as CSV. */
  csv: boolean;
}

/** Opens the tables and says where they are, before anything is read or written. */
export async function openSession(command: Command): Promise<Session> {
  const options = command.optsWithGlobals<{ stack?: string; json?: boolean; csv?: boolean }>();
  const target = resolveTarget(options.stack, surroundings.environment);
  const store = await openStore(target);
  const { json = false, csv = false } = options;
  // With --json and --csv, standard output is for a program.
  (json || csv ? remark : say)(describeTarget(target, store.region, surroundings.environment));
  const tables = tablesOf(store);
  return {
    target,
    tables,
    ledger: ledgerReaderOf(store),
    config: configOf(store, tables),
    secrets: secretsOf(target, surroundings.environment),
    baseUrl: () => findBaseUrl(store, surroundings.environment),
    json,
    csv,
  };
}
