/** Prints a request from the ledger or an open reservation. */
import { formatYuan } from '../../../../shared/billing/amount.ts';
import { ledgerJson } from '../../../../shared/operate/ledger/ledger-view.ts';
import { Failure } from '../../../../shared/operate/operator-failure.ts';
import type { FoundRequest } from '../../../../shared/operate/requests/find-request.ts';
import { requestSteps } from '../../../../shared/operate/requests/request-view.ts';
import { isoTime } from '../../../../shared/wire/iso-time.ts';
import type { JsonOption } from '../terminal/option-values.ts';
import type { Terminal } from '../terminal/terminal.ts';

/** Throws a Failure if the charge is wrong. */
export function printRequest(terminal: Terminal, found: FoundRequest, { json }: JsonOption): void {
  if (found.kind === 'open') return printOpen(terminal, found, json);
  const { row, problem } = found;
  const steps = requestSteps(row);
  if (json) terminal.printJson({ ...ledgerJson(row), steps, problem: problem ?? null });
  else {
    terminal.print(`${row.kind === 'grant' ? 'grant' : 'request'} ${row.id} of account ${row.account}`);
    terminal.printTable(steps.map(([what, words]) => [`  ${what}`, words]));
  }
  if (problem !== undefined) throw new Failure(`this row does not add up: ${problem}`);
  if (!json) terminal.print('The charge follows from the row: it adds up.');
}

function printOpen(
  terminal: Terminal,
  { account, id, entry }: Extract<FoundRequest, { kind: 'open' }>,
  json: boolean | undefined,
): void {
  const until = isoTime(entry.until * 1000);
  const reserved = formatYuan(entry.amount);
  if (json) return terminal.printJson({ id, account, open: true, model: entry.model, reserved, until });
  terminal.print(
    `request ${id} of account ${account} is open: model ${entry.model}, ${reserved} yuan reserved`,
  );
  terminal.remark(`It ends by ${until}, or is closed as expired some minutes after that.`);
}
