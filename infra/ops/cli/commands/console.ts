/** The command `console`: pages in a browser on this machine, with the operator's own credentials. */
import type { OperatorPorts } from '../../../../shared/operate/operator-ports.ts';
import { viewOverview } from '../../../../shared/operate/overview.ts';
import { utcMonth } from '../../../../shared/wire/iso-time.ts';
import { serveConsole } from '../../console/serve.ts';
import { operating, reading, shows } from '../command.ts';
import { parseNumber } from '../option-values.ts';

interface ConsoleCommandOptions {
  readOnly?: boolean;
  port: number;
  check?: boolean;
  revoke?: string;
  history?: string;
}

export const consoleCommand = shows('console', {
  does: 'pages in a browser: customers, keys, channels, prices, settings, requests, statements, versions, audit',
  takes: {
    '--read-only': 'show no forms that write; needs the policy support alone',
    '--port <n>': ['on this port of 127.0.0.1; 0: a free one', parseNumber, 0],
    '--check': 'read what the first pages read, then end',
    '--revoke <person>':
      'of the console that the stack deploys: end the sessions of a person (the name that its pages show), or of `all`',
    '--history <day>': 'of that console: what was written through it on a day, such as 2026-11-27, in UTC',
  },
  notes: `
It listens on 127.0.0.1 alone. The address works once, within a minute; the session ends after 30 minutes without a
request, or with Ctrl-C. Nothing is written that a page did not show and ask before.`,
  examples: ['console', 'console --stack relay --read-only'],
  policies: operating,
  optionPolicies: { '--read-only': reading, '--history': reading },
  async run({ ports, terminal }, { readOnly = false, port, check, revoke, history }: ConsoleCommandOptions) {
    const { print, printAs } = terminal;
    if (revoke !== undefined) {
      await ports.consoles.revoke(revoke);
      return printAs({ revoked: revoke }, () => print(`Sessions of ${revoke} are over.`));
    }
    if (history !== undefined) {
      const lines = await ports.consoles.history(history);
      for (let more = lines; (more.at(-1)?.number ?? 1) > 1; lines.push(...more))
        more = await ports.consoles.history(history, more.at(-1)?.number);
      return printAs(lines, () => {
        if (lines.length === 0) print(`Nothing was written through a deployed console on ${history}.`);
        for (const line of lines) {
          if (line.at === undefined) print(`${line.number}: no line: not begun, or the line is gone`);
          else {
            const { at, by, role, title, effect, result = ['no end'] } = line;
            print(`${at} ${by} (${role}): ${title}: ${effect.join('; ')} -> ${result.join('; ')}`);
          }
        }
      });
    }
    await readFirst(ports, readOnly);
    if (check) return printAs({ allowed: true }, () => print('The credentials allow what the console does.'));
    const { stack, local } = ports.target;
    const served = await serveConsole(ports, {
      readOnly,
      port,
      where: `${stack}${local ? ', local tables' : ''}`,
      name: await ports.operator(),
      onFault: (error, path) =>
        terminal.remark(
          `/${path}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
        ),
    });
    const { address } = served;
    printAs({ address }, () => print(`The console, for one browser and within a minute: ${address}`));
    terminal.remark('Ctrl-C ends it, as do 30 minutes without a request.');
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => served.stop());
    return served;
  },
});

/** Who may not read or write learns it before a browser is opened. */
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
