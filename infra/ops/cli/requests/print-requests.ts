/** Prints requests of the log, and what a search reads before it is made. */
import type { LogSource } from '../../../../shared/operate/call-log.ts';
import type { ListedRequest } from '../../../../shared/operate/requests/list-requests.ts';
import type { Terminal } from '../terminal/terminal.ts';

export function scopeWords(
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

export function printRequests(
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
