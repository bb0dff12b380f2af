#!/usr/bin/env node
/** The operators' tool as a process: `relay-ops <command>`. */
import { runProgram } from './program.ts';

// A reader that has seen enough, such as `head`, must not stop a command between two writes.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);

process.exitCode = await runProgram(process.argv.slice(2), {
  input: process.stdin,
  output: process.stdout,
  errors: process.stderr,
  environment: process.env,
});
