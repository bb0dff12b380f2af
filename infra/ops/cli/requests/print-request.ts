/** Prints the story of a request: its lines in the log, then its ledger row or open reservation, then what to do. */
import { formatYuan } from '../../../../shared/billing/amount.ts';
import { ledgerJson } from '../../../../shared/operate/ledger/ledger-view.ts';
import { Failure } from '../../../../shared/operate/operator-failure.ts';
import type { ExplainedRequest } from '../../../../shared/operate/requests/explain-request.ts';
import type { FoundRequest } from '../../../../shared/operate/requests/find-request.ts';
import { requestSteps } from '../../../../shared/operate/requests/request-view.ts';
import { nextStep } from '../../../../shared/operate/requests/next-step.ts';
import { storySteps } from '../../../../shared/operate/requests/story-steps.ts';
import { isoTime } from '../../../../shared/wire/iso-time.ts';
import type { Terminal } from '../terminal/terminal.ts';

/** Throws a Failure if the charge is wrong. */
export function printExplained(terminal: Terminal, explained: ExplainedRequest): void {
  const { id, found, logged, note, version, servedVersion } = explained;
  const json = terminal.format === 'json';
  const steps = logged ? storySteps(logged) : [];
  const next = logged && nextStep(logged);
  if (json) {
    const booked = found && bookedJson(found);
    const log = logged && {
      request: logged.line?.fields,
      explain: logged.story?.fields,
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
