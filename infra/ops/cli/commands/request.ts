/** The commands of `request`: why a call was refused, failed or slow, from log, ledger and configuration; and its refund. */
import { Option } from 'commander';
import { formatTags, type Attribution } from '../../../../shared/billing/ledger-row.ts';
import { formatYuan } from '../../../../shared/billing/money.ts';
import { planRefundCharge, type RefundInput } from '../../../../shared/operate/customers/refund-charge.ts';
import type { LogSource } from '../../../../shared/operate/operator-ports.ts';
import { formatLedgerRow } from '../../../../shared/operate/ledger/ledger.ts';
import { formatCount, Failure, formatMoney, usageFailure } from '../../../../shared/operate/plan.ts';
import {
  estimateBytes,
  listRequests,
  formatMegabytes,
  formatLogCost,
  requestSearch,
  requestStatuses,
  estimateWatchBytes,
  watchRequests,
  type AskedRequests,
  type ListedRequest,
  type RequestStatus,
} from '../../../../shared/operate/requests/list-requests.ts';
import {
  explainMissingRow,
  explainRequest,
  explainSteps,
} from '../../../../shared/operate/requests/explain-request.ts';
import { requestSteps, type FoundRequest } from '../../../../shared/operate/requests/find-request.ts';
import { adviseNextStep } from '../../../../shared/operate/requests/next-step.ts';
import { isoTime } from '../../../../shared/wire/iso-time.ts';
import { defineChange, defineView, type CommandGroup, type CommandRun } from '../command.ts';
import { callFilters, parseDuration, parseNumber, parsePast, type Moment } from '../option-values.ts';
import { formatTable, type Column, type Terminal } from '../terminal.ts';
import { applyWait, defineGrantWrite, type WithWait } from './grant.ts';

const notes = `
A request id is the header x-request-id or the id of an answer (chatcmpl-..., resp-...); at least its first 10 characters
are enough. \`show\` searches the log within half an hour of the time in the id.`;

const showRequest = defineView('show', {
  does: 'explain what happened to a request, what it cost and what to do next',
  takes: {
    '<id>': 'request id, answer id (chatcmpl-...), or the start of one',
  },
  examples: ['request show chatcmpl-01jd3k5m7n9p1r3t5v7x9z1b3d', 'request show 01jd3k5m7n9p'],
  async run({ ports, terminal }, asked: string) {
    if (asked.startsWith('grant#'))
      throw usageFailure(`this is a grant: run \`grant show ACCOUNT ${asked.slice(6)}\``);
    const { id, found, logged, note, version, servedVersion } = await explainRequest(ports, asked);
    const { print, printFacts } = terminal;
    const steps = logged ? explainSteps(logged) : [];
    const next = logged && adviseNextStep(logged, ports.target);
    const problem = found?.kind === 'booked' ? found.problem : undefined;
    const wrong =
      problem === undefined ? undefined : new Failure(`the charge does not match its ledger row: ${problem}`);
    if (terminal.format === 'json') {
      terminal.printJson({
        id,
        ...(found && formatFound(found)),
        story: steps,
        next: next ?? null,
        log: logged ? { request: logged.line?.fields, also: logged.events } : null,
        note: note ?? null,
        config: version ?? null,
      });
      if (wrong) throw wrong;
      return;
    }
    if (logged) {
      print(`Request ${id} (log)`);
      const now = version === servedVersion ? '' : ` (now ${servedVersion})`;
      printFacts([
        ...steps,
        ...(version === undefined ? [] : [['config', `version ${version}${now}`] as const]),
      ]);
    }
    if (note !== undefined) terminal.remark(note);
    if (!found) print(explainMissingRow(logged, ports.clock.now()));
    else if (found.kind === 'open') printOpen(terminal, found);
    else {
      const { row, late } = found;
      print(`${row.kind === 'grant' ? 'Grant' : 'Request'} ${row.id} of ${row.account} (ledger)`);
      printFacts(requestSteps(row, late));
      if (wrong) throw wrong;
      print('Verified: the charge matches the ledger row.');
    }
    if (next !== undefined) print(`Next: ${next}`);
  },
});

interface RequestsOptions {
  account?: string;
  key?: string;
  model?: string;
  channel?: string;
  endUser?: string;
  tag?: Attribution['tags'];
  status?: RequestStatus;
  /** Milliseconds. */
  slowerThan?: number;
  since: Moment;
  until?: Moment;
  limit: number;
  follow?: boolean;
}

const listRequestsCommand = defineView('list', {
  does: 'list requests; filter by status, such as refused, failed, retried or slow',
  lists: true,
  takes: {
    '--account <name>': 'only this customer',
    '--key <hint>': 'only the key with this hint from `key list`',
    '--model <name>': 'only this model',
    '--channel <id>': 'only requests that this channel handled last',
    ...callFilters,
    '--status <status>': new Option('--status <status>', 'only requests with this status').choices(
      requestStatuses,
    ),
    '--slower-than <time>': ['only requests that took longer, such as 800ms, 5s or 2m', parseDuration],
    '--since <time>': new Option('--since <time>', 'start time, such as 15m, 2d or yesterday 14:05')
      .argParser(parsePast)
      .default(parsePast('1h'), '1h'),
    '--until <time>': ['end time (default: now)', parsePast],
    '--limit <n>': ['maximum number of requests, newest first', parseNumber, 50],
    '--follow': 'then print new requests as they finish, until Ctrl-C',
  },
  examples: [
    'request list --model gpt-4o --slower-than 5s --since 2h',
    'request list --account acme --since 1h --status failed',
    'request list --account acme --tag team=search --end-user alice --since 1d',
    'request list --channel main --since 2026-11-22T14:00:00Z --until 2026-11-22T14:15:00Z --status slow',
    'request list --status 429 --since 15m --follow',
  ],
  async run(run, { since, until, follow, ...options }: RequestsOptions) {
    const { ports, terminal } = run;
    const { limit, account, model, channel, status } = options;
    const { key: key_hint, endUser: end_user, tag: tags, slowerThan: slowerThanMs } = options;
    const nowMs = ports.clock.now();
    const named = { account, model, channel, status, key_hint, end_user, tags, slowerThanMs };
    const asked = { ...named, limit, fromMs: since(nowMs), toMs: until?.(nowMs) ?? nowMs };
    const search = requestSearch(asked);
    if (follow && (until || terminal.format !== 'text'))
      throw usageFailure("--follow can't be combined with --until, --json or --csv");
    const source = await ports.log.source();
    if (!source) throw new Failure('the log groups of this relay are unknown');
    terminal.remark(describeScope(source, search, estimateBytes(source, search, nowMs), ports.target.local));
    const { requests, scannedBytes } = await listRequests(ports, search);
    terminal.printList(requests, { columns, empty: 'No requests found.' });
    if (requests.length >= limit)
      terminal.remark(`Showing the newest ${limit}: use --limit, --since or --until for more`);
    terminal.remark(
      `${formatCount(requests.length, 'request')}; ${formatMegabytes(scannedBytes)} scanned. For details: request show ID`,
    );
    if (!follow) return undefined;
    if (!ports.target.local)
      terminal.remark(
        `--follow scans about ${formatLogCost(estimateWatchBytes(ports, source, asked))} an hour`,
      );
    return { ended: followRequests(run, asked, requests) };
  },
});

const refundCommand = defineChange('refund', {
  does: 'refund a call in full or in part, never more than its charge',
  takes: {
    '<id>': 'request id or answer id',
    '--amount <yuan>': 'amount (default: everything not refunded yet)',
    '--reason <text>': 'shown to the customer',
    '--part <number>': ['number of this partial refund, which makes it safe to repeat', parseNumber],
    ...applyWait,
  },
  examples: ['request refund 01jd3k5m7n9p1r3t5v7x9z1b3d --amount 0.5 --reason "answer was cut"'],
  async plan({ ports }, id: string, { wait, ...options }: WithWait<Omit<RefundInput, 'id'>>) {
    return defineGrantWrite(ports, await planRefundCharge(ports, { id, ...options }), wait);
  },
});

export const requestCommands: CommandGroup = {
  name: 'request',
  does: 'list, explain and refund calls',
  notes,
  commands: [listRequestsCommand, showRequest, refundCommand],
};

/** Prints what is newer than what was listed. It never ends by itself. */
async function followRequests(
  { ports, terminal }: CommandRun,
  asked: AskedRequests,
  listed: readonly ListedRequest[],
): Promise<void> {
  const printed = new Set(listed.map(({ line }) => line.request_id));
  const fromMs = listed[0]?.atMs ?? asked.fromMs;
  const watch = watchRequests(ports, asked, asked.toMs);
  for (;;) {
    const { requests } = await watch.look();
    const fresh = requests.filter(({ atMs, line }) => atMs >= fromMs && !printed.has(line.request_id));
    for (const row of formatTable(columns, fresh.toReversed()).slice(1)) terminal.print(row.join('  '));
    await ports.clock.sleep(watch.everyMs);
  }
}

function describeScope(
  source: LogSource,
  { fromMs, toMs }: { fromMs: number; toMs: number },
  bytes: number | undefined,
  isLocal: boolean,
): string {
  const [from, to] = [fromMs, toMs].map((ms) => isoTime(ms));
  const size = bytes === undefined ? 'size unknown' : `about ${formatMegabytes(bytes)}`;
  const price = isLocal ? '' : '; CloudWatch charges about $0.005 per GB scanned';
  return `Searching the log groups ${source.groups.join(', ')} from ${from} to ${to} (${size}${price})`;
}

const columns: Column<ListedRequest>[] = [
  ['at', 'AT', ({ at }) => at, ({ at }) => at.replace(/\.\d+/, '')],
  ['id', 'REQUEST', ({ line }) => formatOptional(line.request_id)],
  ['account', 'ACCOUNT', ({ line }) => formatOptional(line.account), ({ line }) => line.account || '-'],
  ['model', 'MODEL', ({ line }) => formatOptional(line.model), ({ line }) => line.model || '-'],
  ['channel', 'CHANNEL', ({ line }) => formatOptional(line.channel), ({ line }) => line.channel || '-'],
  [
    'status',
    'STATUS',
    ({ line }) => formatOptional(line.status),
    ({ line }) => `${formatOptional(line.status)} ${formatOptional(line.code)}`.trim(),
  ],
  ['code', '', ({ line }) => formatOptional(line.code)],
  ['reason', 'REASON', ({ line }) => formatOptional(line.reason)],
  ['first_content_ms', 'FIRST MS', ({ line }) => formatOptional(line.FirstContentMs)],
  ['duration_ms', 'MS', ({ line }) => formatOptional(line.duration_ms)],
  ['end_user', '', ({ line }) => formatOptional(line.end_user)],
  ['tags', '', ({ line }) => formatTags(line.tags)],
];

const formatOptional = (value: string | number | undefined): string => String(value ?? '');

type OpenRequest = Extract<FoundRequest, { kind: 'open' }>;

function printOpen(terminal: Terminal, { account, id, entry }: OpenRequest): void {
  const until = isoTime(entry.until * 1000);
  const reserved = formatMoney(entry.amount);
  terminal.print(`Request ${id} of ${account} is in flight: model ${entry.model}, ${reserved} reserved`);
  terminal.remark(`It ends by ${until}, or expires a few minutes later.`);
}

function formatFound(found: FoundRequest): object {
  if (found.kind === 'booked') {
    const { row, late, problem } = found;
    const steps = requestSteps(row, late);
    return {
      ...formatLedgerRow(row),
      late: late ? formatLedgerRow(late) : null,
      steps,
      problem: problem ?? null,
    };
  }
  const { account, id, entry } = found;
  return {
    id,
    account,
    open: true,
    model: entry.model,
    reserved: formatYuan(entry.amount),
    until: isoTime(entry.until * 1000),
  };
}
