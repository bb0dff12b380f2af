/** `npm start`: runs the synthesized stack on this machine until Ctrl-C. */
import { logToStderr } from './host/log.ts';
import { readOptions } from './host/local-options.ts';
import { StartError } from './host/start-error.ts';
import { startStack, type RunningStack } from './start-stack.ts';

const environmentsMax = 16;

// The reader of the output may close its pipe (`npm start | head`). The stack must still shut down in order.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});

let start: Promise<RunningStack> | undefined;
let ending: Promise<void> | undefined;

function end(exitCode: number): void {
  ending ??= Promise.resolve(start)
    .then((stack) => stack?.close())
    .catch(() => {})
    .then(() => process.exit(exitCode));
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => end(0));
// Runs the schedules once the stack has started. Without a handler the signal would end the process.
process.on('SIGUSR2', () => void start?.then((stack) => stack.runSchedules()).catch(() => {}));
// The parent that opened the channel (bootstrap or a test) has ended.
process.once('disconnect', () => end(1));

function describe(stack: RunningStack): string {
  const { origin, key, dynamodbEndpoint } = stack;
  const body = '{"model":"demo-chat","stream":true,"messages":[{"role":"user","content":"Hello!"}]}';
  const trial =
    key === undefined
      ? ['no keys yet: npm run ops -- key create']
      : [
          `key ${key}`,
          '',
          `curl -N ${origin}/v1/chat/completions -H 'Authorization: Bearer ${key}' ` +
            `-H 'Content-Type: application/json' -d '${body}'`,
          '',
        ];
  return [`tables ${dynamodbEndpoint}`, ...trial, `relay ready on ${origin}/v1`, ''].join('\n');
}

try {
  start = startStack({ ...readOptions(process.env), environmentsMax }, logToStderr);
  const stack = await start;
  void stack.emulatorEnded.then((reason) => {
    if (ending !== undefined) return;
    logToStderr(`the DynamoDB emulator ended: ${reason}`);
    end(1);
  });
  if (ending === undefined) process.stdout.write(describe(stack));
} catch (error) {
  logToStderr(
    error instanceof StartError ? `relay cannot start: ${error.message}` : String((error as Error).stack),
  );
  process.exitCode = 1;
  end(1);
}
