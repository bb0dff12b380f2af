/** The command `console`: pages in a browser on this machine, with the operator's own credentials. */
import type { OperatorPorts } from '../../../../shared/operate/operator-ports.ts';
import { viewOverview } from '../../../../shared/operate/overview.ts';
import { describeStack } from '../../../../shared/operate/plan.ts';
import { utcMonth } from '../../../../shared/wire/iso-time.ts';
import { operators, viewers, defineView } from '../command.ts';
import { parseNumber } from '../option-values.ts';

interface ConsoleCommandOptions {
  readOnly?: boolean;
  port: number;
  check?: boolean;
  revoke?: string;
  history?: string;
}

export const consoleCommand = defineView('console', {
  does: 'open the operator console in a browser',
  takes: {
    '--read-only': 'hide all forms; requires only the policy support',
    '--port <n>': ['port on 127.0.0.1; 0 picks a free one', parseNumber, 0],
    '--check': 'check that your credentials are sufficient, then exit',
    '--revoke <person>': 'end the sessions of a person, or of `all`, in the hosted console',
    '--history <day>': 'list the changes made in the hosted console on a UTC day, such as 2026-11-27',
  },
  notes: `
The console listens only on 127.0.0.1. The printed address works once, within a minute. The session ends after 30 idle
minutes, or with Ctrl-C. Every change is shown and confirmed before it is written.`,
  examples: ['console', 'console --stack relay --read-only'],
  policies: operators,
  optionPolicies: { '--read-only': viewers, '--history': viewers },
  async run({ ports, terminal }, { readOnly = false, port, check, revoke, history }: ConsoleCommandOptions) {
    const { print, printAs } = terminal;
    if (revoke !== undefined) {
      await ports.consoles.revoke(revoke);
      return printAs({ revoked: revoke }, () => print(`Ended the sessions of ${revoke}.`));
    }
    if (history !== undefined) {
      const lines = await ports.consoles.history(history);
      for (let more = lines; (more.at(-1)?.number ?? 1) > 1; lines.push(...more))
        more = await ports.consoles.history(history, more.at(-1)?.number);
      return printAs(lines, () => {
        if (lines.length === 0) print(`No changes were made in the hosted console on ${history}.`);
        for (const line of lines) {
          if (line.at === undefined)
            print(`${line.number}: missing entry: the change never started, or its entry was deleted`);
          else {
            const { at, by, role, title, effect, result = ['unfinished'] } = line;
            print(`${at} ${by} (${role}): ${title}: ${effect.join('; ')} -> ${result.join('; ')}`);
          }
        }
      });
    }
    await readFirst(ports, readOnly);
    if (check)
      return printAs({ allowed: true }, () => print('Your credentials are sufficient for the console.'));
    // Loaded late: the console's pages are 56 of the 464 modules of this program.
    const { serveConsole } = await import('../../console/serve.ts');
    const served = await serveConsole(ports, {
      readOnly,
      port,
      where: describeStack(ports.target),
      name: await ports.operator(),
      onFault: (error, path) =>
        terminal.remark(
          `/${path}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
        ),
    });
    const { address } = served;
    printAs({ address }, () => print(`Open the console within a minute (works once): ${address}`));
    terminal.remark('Press Ctrl-C to stop. It stops by itself after 30 idle minutes.');
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => served.stop());
    return served;
  },
});

/** Check the rights to read and write before a browser opens. */
async function readFirst(ports: OperatorPorts, readOnly: boolean): Promise<void> {
  const { clock, ledger, pages, tables } = ports;
  await viewOverview(ports, 1);
  await pages.underWay(clock.now());
  const month = utcMonth(clock.now());
  await Promise.all([
    ledger.quotas(['none']),
    ledger.accountMonths([{ account: 'none', month }]),
    pages.rowsOf('accounts', ['none']),
    pages.rowsOf('keys', ['none']),
  ]);
  // A policy that writes may read single rows of channels as well; one that reads alone may not.
  if (!readOnly) await tables.get('channels', 'none');
}
