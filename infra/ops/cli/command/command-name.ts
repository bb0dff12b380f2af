/** Names commands as the table of policies and the pages do. */
import type { Command } from 'commander';
import { commandPolicies } from '../../access/command-policies.ts';

/** The words of a command, with the option that was given if that needs a policy of its own. */
export function commandName(command: Command): string {
  const words: string[] = [];
  // The program itself has no parent.
  for (let each = command; each.parent; each = each.parent) words.unshift(each.name());
  const name = words.join(' ');
  const given = command.options.find(
    (option) =>
      command.getOptionValueSource(option.attributeName()) === 'cli' &&
      `${name} ${option.long}` in commandPolicies,
  );
  return given ? `${name} ${given.long}` : name;
}

/** Every command that runs something, by its words. */
export const commandNames = (program: Command): string[] =>
  program.commands.flatMap((command) =>
    command.commands.length === 0 ? [commandName(command)] : commandNames(command),
  );
