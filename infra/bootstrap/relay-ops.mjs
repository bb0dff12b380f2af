#!/usr/bin/env node
/**
 * Runs the operators' tool from any folder: `npx --no relay-ops` in the clone, `relay-ops` anywhere after `npm link`. File arguments are
 * relative to that folder. Plain JavaScript, because the Node that starts it may be 18. Writes nothing on stdout.
 */
import { nodeOfRepository, prepare } from './prepare.mjs';
import { Failure, inRoot, print, runCommand } from './processes.mjs';

try {
  await prepare(false);
  const args = [inRoot('infra', 'ops', 'cli', 'main.ts'), ...process.argv.slice(2)];
  process.exitCode = await runCommand(nodeOfRepository(), args, {
    stdio: 'inherit',
    cwd: process.cwd(),
  });
} catch (error) {
  print(error instanceof Failure ? error.message : String(error.stack));
  process.exitCode = 1;
}
