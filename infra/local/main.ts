/** `npm start`: runs the synthesized stack on this machine until Ctrl-C. */
import { statfsSync } from 'node:fs';
import {
  logToStderr,
  describeKeptData,
  writeReadyText,
  showSlowSteps,
  showTrouble,
  StartError,
} from './host/messages.ts';
import { readOptions, type LocalOptions } from './host/local-options.ts';
import { synthesizeConsole } from './console.ts';
import { startOperatorConsole } from './operator-console.ts';
import { startStack, type RunningStack } from './start-stack.ts';

const environmentsMax = 16;
/** How long everything may take to end in order; what is left then ends with this process. */
const endingMs = 1500;
/** A signal to the process group and the same one passed on by npm come together, and are one. */
const sameSignalMs = 300;

// The reader of the output may close its pipe (`npm start | head`). The stack must still shut down in order.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});

// Balances, the demo key and prompts in the log: files are for their owner alone, those of the emulator too.
process.umask(0o077);

let options: LocalOptions | undefined;
let start: Promise<RunningStack> | undefined;
let stack: RunningStack | undefined;
let endedMs: number | undefined;

function end(exitCode: number, isAsked = false): void {
  if (endedMs !== undefined) {
    // The second Ctrl-C. All others end with this process, because their channels close.
    if (isAsked && performance.now() - endedMs > sameSignalMs) process.exit(130);
    return;
  }
  endedMs = performance.now();
  const closed = Promise.resolve(start)
    .then((running) => running?.close())
    .catch(() => {});
  const exit = (): never => {
    if (isAsked && options) logToStderr(`stopped; ${describeKeptData(options.dataFolder)}`);
    process.exit(exitCode);
  };
  setTimeout(exit, endingMs);
  void closed.then(exit);
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => end(0, true));
// Runs the schedules once the stack has started. Without a handler the signal would end the process.
process.on('SIGUSR2', () => void start?.then((running) => running.runSchedules()).catch(() => {}));
// The parent that opened the channel (bootstrap or a test) has ended.
process.once('disconnect', () => end(1));

/** Tables that grow take some pages at once. */
const roomBytesMin = 1024 * 1024;

function findFullFolder(): string | undefined {
  const folder = options?.dataFolder;
  if (folder === undefined) return undefined;
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize < roomBytesMin ? folder : undefined;
}

const screen = {
  write: logToStderr,
  columns: () => process.stderr.columns ?? 200,
  nowMs: () => performance.now(),
  fullFolder: findFullFolder,
};
const trouble = showTrouble(screen, () => stack?.logFile ?? 'the log');
const log = (line: string): void => {
  if (options?.log === 'stderr') logToStderr(line);
  // Ctrl-C in a terminal ends the functions too: that is no trouble.
  else if (endedMs === undefined) trouble(line);
};

/** Also what the system says of a file, by its name: a person can see to that. */
const isForPeople = (error: unknown): error is Error =>
  error instanceof StartError || (error instanceof Error && 'path' in error && 'code' in error);

try {
  options = readOptions(process.env);
  const steps = showSlowSteps((line) => endedMs === undefined && logToStderr(line));
  if (options.console) steps.begin('adding the console');
  if (options.console)
    options = { ...options, templateFolder: await synthesizeConsole(options.templateFolder) };
  start = startStack({ ...options, environmentsMax, onStep: steps.begin }, log);
  stack = await start.finally(steps.end);
  void stack.emulatorEnded.then((reason) => {
    if (endedMs !== undefined) return;
    logToStderr(`the DynamoDB emulator stopped: ${reason}`);
    end(1);
  });
  const operatorConsole = options.console
    ? undefined
    : await startOperatorConsole({
        ...options,
        port: options.consolePort,
        dynamodbEndpoint: stack.dynamodbEndpoint,
        log,
      });
  if (endedMs === undefined) process.stdout.write(writeReadyText(stack, options.dataFolder, operatorConsole));
} catch (error) {
  // A start that Ctrl-C ended fails: that is no news.
  if (endedMs === undefined)
    logToStderr(isForPeople(error) ? `relay cannot start: ${error.message}` : String((error as Error).stack));
  process.exitCode = 1;
  end(1);
}
