/** The report of a soak: one page and its plots. It contains no paths of the machine. */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { balancesOf } from '../checker/balances.ts';
import { missingFaults } from '../checker/check.ts';
import type { CallSeen, Finding } from '../checker/observations.ts';
import type { SoakOptions } from '../options.ts';
import { faultKinds } from '../plan/fault-kinds.ts';
import type { SoakResult } from '../soak.ts';
import { isOrdinary, plotsOf, quantile } from './figures.ts';
import { plotSvg } from './plot.ts';

const findingsShown = 60;
const oneLine = (text: string): string => text.replaceAll(/\s+/g, ' ').replaceAll('|', '\\|');

/** Pads columns as the formatter of this repository does. */
export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const texts = [head, ...rows].map((row) => row.map(oneLine));
  const widths = head.map((_, column) => Math.max(3, ...texts.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    `| ${row.map((text, at) => text.padEnd(widths[at] ?? 0)).join(' | ')} |`;
  const [first = [], ...others] = texts;
  return [line(first), `| ${widths.map((size) => '-'.repeat(size)).join(' | ')} |`, ...others.map(line)].join(
    '\n',
  );
}

const yuan = (nano: bigint): string => {
  const digits = (nano < 0n ? -nano : nano).toString().padStart(10, '0');
  const fraction = digits.slice(-9).replace(/0+$/, '');
  return `${nano < 0n ? '-' : ''}${digits.slice(0, -9)}${fraction === '' ? '' : `.${fraction}`}`;
};

export interface Report {
  options: SoakOptions;
  result: SoakResult;
  findings: readonly Finding[];
}

export function outcomeOf({ result, findings }: Report): string {
  if (result.interrupted) return 'Ended by hand: answers were checked, balances were not.';
  const missing = missingFaults(result.seen);
  if (findings.length === 0 && missing.length === 0) return 'Nothing was lost, doubled or answered wrong.';
  return [
    ...(findings.length > 0 ? [`${findings.length} findings.`] : []),
    ...(missing.length > 0 ? [`Injected too rarely: ${missing.join('; ')}.`] : []),
  ].join(' ');
}

export function reportPage(report: Report): string {
  const { options, result, findings } = report;
  const { seen, startedMs, endedMs } = result;
  const seconds = Math.round((endedMs - startedMs) / 1000);
  const faults =
    options.faults.length === Object.keys(faultKinds).length ? [] : [`--faults ${options.faults.join(',')}`];
  const again = [
    `--minutes ${options.minutes}`,
    `--seed ${options.seed}`,
    `--workers ${options.workers}`,
    ...faults,
  ];
  return [
    `# Soak of ${Math.round(seconds / 6) / 10} minutes`,
    outcomeOf(report),
    `Started ${new Date(startedMs).toISOString()}, seed ${options.seed}. Repeat it: \`npm run soak -- ${again.join(' ')}\`.`,
    ...(options.lie ? [`A layer around the relay lied: ${options.lie}.`] : []),
    '## Calls',
    callsTable(seen.calls),
    latencyLine(seen.calls),
    '![Latency by second](latency.svg)',
    '![Calls by second](calls.svg)',
    '## Faults',
    `Each kind must happen ${seen.quota} times in a run of this length; \`npm run soak -- --help\` explains each:`,
    [...seen.injected].map(([kind, count]) => `${kind} ${count}`).join(', '),
    '## Findings',
    findings.length === 0 ? 'None.' : findingsTable(findings),
    ...(result.interrupted ? [] : moneyOf(result)),
    '## Memory',
    memoryLine(result),
    '![Memory](memory.svg)',
    '',
  ].join('\n\n');
}

const isRefused = ({ end, status }: CallSeen): boolean => end === 'error' && status !== 200;

function callsTable(calls: readonly CallSeen[]): string {
  const count = (isCounted: (call: CallSeen) => boolean): string => String(calls.filter(isCounted).length);
  const rows: [string, string][] = [
    ['all', String(calls.length)],
    ['whole', count(({ end }) => end === 'whole')],
    ['refused', count(isRefused)],
    ['ended in an error after the 200', count((call) => call.end === 'error' && !isRefused(call))],
    ['broken off', count(({ end }) => end === 'cut')],
    ['left by the client', count(({ end }) => end === 'left')],
    ['ended silently', count(({ end }) => end === 'silent')],
  ];
  return markdownTable(['calls', 'number'], rows);
}

function latencyLine(calls: readonly CallSeen[]): string {
  const ordinary = calls.filter(isOrdinary);
  const first = ordinary.map(({ startedMs, firstContentMs = startedMs }) => firstContentMs - startedMs);
  const at = (share: number): number => Math.round(quantile(first, share));
  return `Ordinary calls that ended whole: ${ordinary.length}. First bytes after ${at(0.5)} ms (median), ${at(0.95)} ms (95 %), ${at(0.99)} ms (99 %), faults of the store and of processes included.`;
}

function findingsTable(findings: readonly Finding[]): string {
  const rules = new Map<string, number>();
  for (const { rule } of findings) rules.set(rule, (rules.get(rule) ?? 0) + 1);
  const shown = findings.slice(0, findingsShown);
  return [
    markdownTable(
      ['rule', 'number'],
      [...rules].map(([rule, number]) => [rule, String(number)]),
    ),
    markdownTable(
      ['rule', 'what'],
      shown.map(({ rule, what }) => [rule, what]),
    ),
    ...(findings.length > shown.length ? [`And ${findings.length - shown.length} more.`] : []),
  ].join('\n\n');
}

function moneyOf({ seen, audit }: SoakResult): string[] {
  const { quotas, ledger } = seen.tables;
  const rows = [...balancesOf(quotas)].map(([name, { granted, available, open, spent }]) => [
    name,
    yuan(granted),
    yuan(available),
    yuan(open),
    yuan(spent),
    String(ledger.filter(({ account }) => account === name).length),
  ]);
  const kinds = new Map<string, number>();
  for (const row of ledger) kinds.set(String(row['kind']), (kinds.get(String(row['kind'])) ?? 0) + 1);
  const listed = [...kinds].map(([kind, number]) => `${kind} ${number}`).join(', ');
  return [
    '## Balances',
    markdownTable(['account', 'granted', 'available', 'reserved', 'spent', 'ledger rows'], rows),
    `Ledger rows: ${listed}. Late settles that the audit wrote again: ${seen.losses.length}.`,
    '## Audit',
    `Output of \`npx --no relay-ops audit\`, exit code ${audit?.exitCode ?? 'unknown'}:`,
    `\`\`\`text\n${(audit?.output ?? '').replaceAll(/http:\/\/127\.0\.0\.1:\d+/g, 'http://127.0.0.1:8000')}\n\`\`\``,
  ];
}

function memoryLine({ memory }: SoakResult): string {
  if (memory.every(({ runner }) => runner === 0)) return 'Memory is measured on Linux alone.';
  const most = (pick: (sample: SoakResult['memory'][number]) => number): number =>
    Math.round(Math.max(...memory.map(pick)));
  return `At most: functions together ${most(({ functions }) => functions)} MB, the largest of them ${most(({ largest }) => largest)} MB, their host ${most(({ runner }) => runner)} MB, the emulated tables ${most(({ emulator }) => emulator)} MB.`;
}

/** Returns the file of the page. */
export function writeReport(report: Report): string {
  const folder = report.options.report;
  mkdirSync(folder, { recursive: true });
  for (const [name, plot] of Object.entries(plotsOf(report.result)))
    writeFileSync(path.join(folder, `${name}.svg`), plotSvg(plot));
  const page = path.join(folder, 'README.md');
  writeFileSync(page, reportPage(report).replaceAll(/\n{3,}/g, '\n\n'));
  return page;
}
