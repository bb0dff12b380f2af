import type { Command } from 'commander';
import { openTables } from './tables.ts';
import type { Tables } from './tables.ts';
import { describeTarget, resolveTarget } from './target.ts';
import type { Target } from './target.ts';
import { remark, say } from './terminal.ts';

/** What a command works with. */
export interface Session {
  target: Target;
  tables: Tables;
  /** Print results as JSON. */
  json: boolean;
}

/** Opens the tables and says where they are, before anything is read or written. */
export async function openSession(command: Command): Promise<Session> {
  const options = command.optsWithGlobals<{ stack?: string; json?: boolean }>();
  const target = resolveTarget(options.stack, process.env);
  const tables = await openTables(target);
  const json = options.json ?? false;
  // With --json, standard output is for a program.
  (json ? remark : say)(describeTarget(target, tables.region, process.env));
  return { target, tables, json };
}
