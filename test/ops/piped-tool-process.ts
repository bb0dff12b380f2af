/** Runs commands from the parent process on its own streams. */
import { Readable } from 'node:stream';
import { runProgram } from '../../infra/ops/cli/program.ts';
import type { PipedCommand } from './piped-tool.ts';

process.on('message', ({ words, environment, aws, input }: PipedCommand) => {
  for (const name of Object.keys(process.env)) if (name.startsWith('AWS_')) delete process.env[name];
  Object.assign(process.env, aws);
  const context = {
    input: Readable.from([input]),
    output: process.stdout,
    errors: process.stderr,
    environment,
  };
  void runProgram(words, context).then((code) => {
    process.stdout.write('\0');
    process.stderr.write('\0');
    process.send?.({ code });
  });
});
