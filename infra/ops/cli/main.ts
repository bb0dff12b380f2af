#!/usr/bin/env node
/** The operators' tool as a process: `npm run ops -- <command>`. */
import { runProgram } from './program.ts';

process.exitCode = await runProgram(process.argv.slice(2), {
  input: process.stdin,
  output: process.stdout,
  errors: process.stderr,
  environment: process.env,
});
