/** Puts a plan's questions to the person at the terminal. Throws a Failure unless each is answered with yes. */
import type { Plan } from '../../../../shared/operate/plan.ts';
import type { Terminal } from './terminal.ts';

export async function confirmPlan(
  terminal: Terminal,
  { questions }: Pick<Plan<unknown>, 'questions'>,
  options: { yes?: boolean | undefined },
): Promise<void> {
  for (const question of questions) await terminal.confirm(question, options);
}
