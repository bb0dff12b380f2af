/** `npm run soak`: see --help. */
import { randomInt } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { answerFindings } from './checker/answers.ts';
import { causeFindings } from './checker/causes.ts';
import { check, missingFaults } from './checker/check.ts';
import { Circumstances, type Finding } from './checker/observations.ts';
import { runCrashScenario } from './scenarios/crash.ts';
import { help, readCommand, type SoakOptions } from './options.ts';
import { outcomeOf, writeReport } from './report/report.ts';
import { runSoak, type Progress, type SoakResult } from './soak.ts';

const print = (line: string): void => void process.stdout.write(`${line}\n`);
const lineEveryMs = 10_000;
const wrongOption = 2;
const byCtrlC = 130;
const shownAtOnce = 10;

function progressLines(): Progress {
  let lastMs = -Infinity;
  const clock = (milliseconds: number): string => {
    const seconds = Math.floor(milliseconds / 1000);
    return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
  };
  return ({ elapsedMs, lengthMs, calls, failed, faults, step }) => {
    const line = `${clock(elapsedMs)} of ${clock(lengthMs)}  ${calls} calls, ${failed} not whole, ${faults} faults  ${step}`;
    if (process.stdout.isTTY) process.stdout.write(`\r\u001B[2K${line}`);
    else if (elapsedMs - lastMs >= lineEveryMs) {
      lastMs = elapsedMs;
      print(line);
    }
  };
}

function findingsOf(result: SoakResult): Finding[] {
  if (!result.interrupted) {
    const failed = result.audit?.exitCode !== 0;
    return [
      ...check(result.seen),
      ...(failed ? [{ rule: 'audit', what: "the product's own audit found something" }] : []),
    ];
  }
  const circumstances = new Circumstances(result.seen);
  return [...answerFindings(result.seen, circumstances), ...causeFindings(result.seen, circumstances)];
}

/** Writes the rows of findings next to the log. */
function keepTables({ seen, logFile }: SoakResult): string {
  const file = logFile.replace(/log$/, 'tables.json');
  const text = (_: string, value: unknown): unknown => {
    if (typeof value === 'bigint') return String(value);
    return value instanceof Set ? [...(value as Set<unknown>)] : value;
  };
  writeFileSync(file, JSON.stringify(seen.tables, text, 1));
  return file;
}

async function soak(options: SoakOptions): Promise<number> {
  const interruption = new AbortController();
  const interrupt = (): void => {
    if (interruption.signal.aborted) process.exit(byCtrlC);
    print('\nending; Ctrl-C again ends without a report');
    interruption.abort();
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, interrupt);
  print(
    `seed ${options.seed}, ${options.minutes} minutes, ${options.faults.length} kinds of faults; the stack starts`,
  );
  const result = await runSoak(options, progressLines(), interruption.signal);
  const report = { options, result, findings: findingsOf(result) };
  const page = writeReport(report);
  if (process.stdout.isTTY) print('');
  print(outcomeOf(report));
  for (const { rule, what } of report.findings.slice(0, shownAtOnce)) print(`  ${rule}: ${what}`);
  if (report.findings.length > shownAtOnce)
    print(`  and ${report.findings.length - shownAtOnce} more in the report`);
  print(`report ${page}`);
  print(`log    ${result.logFile}`);
  if (report.findings.length > 0) print(`tables ${keepTables(result)}`);
  if (result.interrupted) return byCtrlC;
  return report.findings.length > 0 || missingFaults(result.seen).length > 0 ? 1 : 0;
}

async function main(): Promise<number> {
  const command = readCommand(process.argv.slice(2), randomInt(1_000_000));
  switch (command.run) {
    case 'help':
      print(help.trimEnd());
      return 0;
    case 'wrong':
      process.stderr.write(`${command.message}\nnpm run soak -- --help lists all options\n`);
      return wrongOption;
    case 'crash':
      return runCrashScenario();
    case 'soak':
      break;
  }
  return soak(command.options).catch((error: unknown) => {
    process.stderr.write(`the soak could not run: ${(error as Error).message}\n`);
    return wrongOption;
  });
}

// Sleeping calls of an interrupted soak would keep the process alive.
process.exit(await main());
