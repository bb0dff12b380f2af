/** The commands `request` and `requests`: why a call was refused, failed or slow, from log, ledger and configuration. */
import { InvalidArgumentError, Option, type Command } from 'commander';
import {
  expectedBytes,
  listRequests,
  requestSearch,
  requestStatuses,
  type RequestStatus,
  type ListedRequest,
} from '../../../../shared/operate/requests/list-requests.ts';
import {
  explainRequest,
  type ExplainedRequest,
  storySteps,
} from '../../../../shared/operate/requests/explain-request.ts';
import { Failure, usageFailure } from '../../../../shared/operate/plan.ts';
import { listing, type CommandContext } from '../command.ts';
import { parseDuration, parseNumber, parseTime } from '../option-values.ts';
import { formatYuan } from '../../../../shared/billing/amount.ts';
import { ledgerJson } from '../../../../shared/operate/ledger/ledger.ts';
import { type FoundRequest, requestSteps } from '../../../../shared/operate/requests/find-request.ts';
import { nextStep } from '../../../../shared/operate/requests/next-step.ts';
import { isoTime } from '../../../../shared/wire/iso-time.ts';
import type { Terminal } from '../terminal.ts';
import type { LogSource } from '../../../../shared/operate/operator-ports.ts';

const notes = `
An id is what the customer has: the header x-request-id, or the id of an answer (chatcmpl-..., resp-...), or the first 10 or
more characters of it. The log is searched within 15 minutes of the time in the id.`;

interface RequestsOptions {
  account?: string;
  model?: string;
  channel?: string;
  status?: RequestStatus;
  /** Milliseconds. */
  slowerThan?: number;
  /** Epoch milliseconds. */
  since: (nowMs: number) => number;
  until?: number;
  limit: number;
}

export function addRequestCommands(program: Command, { onTables }: CommandContext): void {
  program
    .command('request')
    .description('tell what happened to a request, why, what it cost, and what to do')
    .argument('<id>', 'the header x-request-id, the id of an answer (chatcmpl-...), or the beginning of it')
    .addHelpText('after', notes)
    .action(
      onTables(async ({ ports, terminal }, id: string) => {
        if (id.startsWith('grant#'))
          throw usageFailure(`a grant is named within its account: grant show ACCOUNT ${id.slice(6)}`);
        return printExplained(terminal, await explainRequest(ports, id));
      }),
    );

  listing(
    program
      .command('requests')
      .description('list the requests of a time, or those of them that were refused, failed, retried or slow')
      .option('--account <name>', 'only of this account')
      .option('--model <name>', 'only of this model')
      .option('--channel <id>', 'only those whose last channel was this')
      .addOption(new Option('--status <status>', 'only these').choices(requestStatuses))
      .option('--slower-than <time>', 'only those that took longer in all: 800ms, 5s, 2m', parseDuration)
      .addOption(
        new Option('--since <time>', 'a time, or how long ago: 15m, 1h, 2d')
          .argParser(parseSince)
          .default(parseSince('1h'), '1h'),
      )
      .option('--until <time>', 'a time; otherwise now', parseTime)
      .option('--limit <n>', 'the newest so many', parseNumber, 50),
  )
    .addHelpText('after', notes)
    .action(
      onTables(
        async (
          { ports, terminal },
          { since, until, limit, account, model, channel, status, slowerThan }: RequestsOptions,
        ) => {
          const asked = { limit, account, model, channel, status, slowerThanMs: slowerThan };
          const nowMs = ports.clock.now();
          const search = requestSearch({ ...asked, fromMs: since(nowMs), toMs: until ?? nowMs });
          const source = await ports.log.source();
          if (!source) throw new Failure('it is not known where the log of this relay is');
          terminal.remark(scopeWords(source, search, expectedBytes(source, search, nowMs)));
          printRequests(terminal, { ...(await listRequests(ports, search)), limit });
        },
      ),
    );
}

const unitMs: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

function parseSince(written: string): (nowMs: number) => number {
  const [, count, unit = ''] = /^(\d{1,5})([mhd])$/.exec(written.trim()) ?? [];
  if (count !== undefined) return (nowMs) => nowMs - Number(count) * (unitMs[unit] ?? 0);
  try {
    const timeMs = parseTime(written);
    return () => timeMs;
  } catch {
    throw new InvalidArgumentError('Wanted how long ago, such as 15m, 1h or 2d, or a time with its zone.');
  }
}

// Prints the story of a request: its lines in the log, then its ledger row or open reservation, then what to do.

/** Throws a Failure if the charge is wrong. */
function printExplained(terminal: Terminal, explained: ExplainedRequest): void {
  const { id, found, logged, note, version, servedVersion } = explained;
  const json = terminal.format === 'json';
  const steps = logged ? storySteps(logged) : [];
  const next = logged && nextStep(logged);
  if (json) {
    const booked = found && bookedJson(found);
    const log = logged && {
      request: logged.line?.fields,
      also: logged.events,
    };
    terminal.printJson({
      id,
      ...booked,
      story: steps,
      next: next ?? null,
      log: log ?? null,
      note: note ?? null,
      config: version ?? null,
    });
  } else {
    if (logged) {
      terminal.print(`request ${id} in the log`);
      terminal.printTable(steps.map(([what, words]) => [`  ${what}`, words]));
    }
    if (version !== undefined && logged)
      terminal.print(
        `  configuration ${version}${version === servedVersion ? '' : `, now ${servedVersion}`}`,
      );
    if (note !== undefined) terminal.remark(note);
    if (!found) terminal.print('Nothing was charged: there is no ledger row.');
  }
  if (found && !json) printBooked(terminal, found);
  if (next !== undefined && !json) terminal.print(`Next: ${next}`);
  const problem = found?.kind === 'booked' ? found.problem : undefined;
  if (json && problem !== undefined) throw new Failure(`this row does not add up: ${problem}`);
}

function bookedJson(found: FoundRequest): object {
  if (found.kind === 'open') return openJson(found);
  const { row, late, problem } = found;
  const steps = requestSteps(row, late);
  return { ...ledgerJson(row), late: late ? ledgerJson(late) : null, steps, problem: problem ?? null };
}

/** Throws a Failure if the charge is wrong. */
function printBooked(terminal: Terminal, found: FoundRequest): void {
  const json = terminal.format === 'json';
  if (found.kind === 'open') return printOpen(terminal, found);
  const { row, late, problem } = found;
  const steps = requestSteps(row, late);
  if (json) terminal.printJson(bookedJson(found));
  else {
    terminal.print(`${row.kind === 'grant' ? 'grant' : 'request'} ${row.id} of account ${row.account}`);
    terminal.printTable(steps.map(([what, words]) => [`  ${what}`, words]));
  }
  if (problem !== undefined) throw new Failure(`this row does not add up: ${problem}`);
  if (!json) terminal.print('The charge follows from the row: it adds up.');
}

function printOpen(terminal: Terminal, found: Extract<FoundRequest, { kind: 'open' }>): void {
  if (terminal.format === 'json') return terminal.printJson(openJson(found));
  const { account, id, entry } = found;
  const until = isoTime(entry.until * 1000);
  const reserved = formatYuan(entry.amount);
  terminal.print(
    `request ${id} of account ${account} is open: model ${entry.model}, ${reserved} yuan reserved`,
  );
  terminal.remark(`It ends by ${until}, or is closed as expired some minutes after that.`);
}

const openJson = ({ account, id, entry }: Extract<FoundRequest, { kind: 'open' }>): object => ({
  id,
  account,
  open: true,
  model: entry.model,
  reserved: formatYuan(entry.amount),
  until: isoTime(entry.until * 1000),
});

// Prints requests of the log, and what a search reads before it is made.

function scopeWords(
  source: LogSource,
  { fromMs, toMs }: { fromMs: number; toMs: number },
  bytes: number | undefined,
): string {
  const [from, to] = [fromMs, toMs].map((ms) => new Date(ms).toISOString().replace(/\.\d+/, ''));
  const size = bytes === undefined ? 'how much that is, is not known yet' : `some ${megabytes(bytes)}`;
  return (
    `searches the log groups ${source.groups.join(', ')} from ${from} to ${to}: ${size}; ` +
    'CloudWatch bills some 0.005 dollars for each GB that is read'
  );
}

const columns = [
  'at',
  'id',
  'account',
  'model',
  'channel',
  'status',
  'code',
  'reason',
  'first_content_ms',
  'duration_ms',
] as const;

function printRequests(
  terminal: Terminal,
  {
    requests,
    scannedBytes,
    limit,
  }: { requests: readonly ListedRequest[]; scannedBytes: number; limit: number },
): void {
  terminal.printList({
    columns,
    rows: requests.map(({ firstContentMs, durationMs, ...one }) => ({
      ...one,
      first_content_ms: firstContentMs,
      duration_ms: durationMs,
    })),
    table: () => [
      ['AT', 'REQUEST', 'ACCOUNT', 'MODEL', 'CHANNEL', 'STATUS', 'REASON', 'FIRST MS', 'MS'],
      ...requests.map(cellsOf),
    ],
    empty: 'none',
  });
  if (requests.length >= limit)
    terminal.remark(`the newest ${limit} alone: see --limit, --since and --until`);
  terminal.remark(
    `${requests.length} requests; ${megabytes(scannedBytes)} were read. Each one's story: request ID`,
  );
}

const cellsOf = (one: ListedRequest): string[] => [
  one.at.replace(/\.\d+/, ''),
  one.id,
  one.account || '-',
  one.model || '-',
  one.channel || '-',
  words(one.status, one.code),
  one.reason,
  one.firstContentMs,
  one.durationMs,
];

const words = (...parts: string[]): string => parts.filter((part) => part !== '').join(' ');

const megabytes = (bytes: number): string => `${(bytes / 1_000_000).toFixed(bytes < 10_000_000 ? 2 : 0)} MB`;
