/**
 * What every command that writes does, defined once: its plan is shown, its questions are asked, then it is carried out
 * and its result printed. Must never write before the answers.
 */
import type { Plan } from '../../../../shared/operate/plan.ts';
import { approve, type ApproveOptions } from '../terminal/approve.ts';
import type { Terminal } from '../terminal/terminal.ts';

export interface Writing<Made> {
  plan: Plan<unknown>;
  /** Prints what of the plan its effect does not say, such as a table of differences. Text only. */
  preview?: (terminal: Terminal) => void;
  carryOut: () => Promise<Made>;
  /** Prints what was done, as text. */
  print?: (terminal: Terminal, made: Made) => void;
  /** What `--json` prints beside `done` and `effect`. Undefined: nothing was done. */
  facts?: (made: Made | undefined) => object;
}

/** Lets the parts of a literal agree about what is made. */
export const writes = <Made>(writing: Writing<Made>): Writing<Made> => writing;

/** Shows, asks, carries out, prints. */
export async function perform<Made>(
  terminal: Terminal,
  { plan, preview, carryOut, print, facts = () => ({}) }: Writing<Made>,
  options: ApproveOptions,
): Promise<void> {
  const { effect, warnings = [] } = plan;
  preview?.(terminal);
  if (plan.refusal === undefined) effect.forEach(terminal.print);
  terminal.warn(warnings);
  const isJson = terminal.format === 'json';
  const shown = (done: boolean, made?: Made) => ({ done, effect, warnings, ...facts(made) });
  if (!(await approve(terminal, plan, options))) {
    if (isJson) terminal.printJson(shown(false));
    return;
  }
  const made = await carryOut();
  if (isJson) terminal.printJson(shown(true, made));
  else print?.(terminal, made);
}
