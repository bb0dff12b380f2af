/** The commands `request` and `requests`: why a call was refused, failed or slow, from log, ledger and configuration. */
import { InvalidArgumentError, Option, type Command } from 'commander';
import { expectedBytes } from '../../../../shared/operate/requests/expected-bytes.ts';
import { explainRequest } from '../../../../shared/operate/requests/explain-request.ts';
import { listRequests } from '../../../../shared/operate/requests/list-requests.ts';
import {
  requestSearch,
  requestStatuses,
  type RequestStatus,
} from '../../../../shared/operate/requests/request-search.ts';
import { Failure, usageFailure } from '../../../../shared/operate/operator-failure.ts';
import { listing } from '../command/common-options.ts';
import type { CommandContext } from '../command/command-context.ts';
import { parseDuration, parseNumber, parseTime } from '../terminal/option-values.ts';
import { printExplained } from './print-request.ts';
import { printRequests, scopeWords } from './print-requests.ts';

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
