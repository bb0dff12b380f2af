/** The commands of `secret`. The value comes from standard input or a hidden answer, never from the command line. */
import type { Command } from 'commander';
import { carryOutStoreSecret, planStoreSecret } from '../../../shared/operate/channels/store-secret.ts';
import type { CommandContext } from './command/command-context.ts';
import { writes } from './command/writing.ts';
import { readSecret } from './terminal/read-secret.ts';

export function addSecretCommands(program: Command, { writing }: CommandContext): void {
  const secret = program
    .command('secret')
    .description('keys of upstreams, stored in AWS')
    .addHelpText(
      'after',
      '\nRows name a secret by its reference; the value is stored in AWS and shown by no command. The name is yours to choose:\n`openai` becomes /relay/<stack>/openai. On a local stack there is no store: rows have env:NAME there.',
    );

  writing(
    secret
      .command('put')
      .description('store a value from standard input, encrypted, and print its reference')
      .argument('<name>', 'what it is called within the stack')
      .option('--secretsmanager', 'in Secrets Manager (default: SSM Parameter Store, which costs nothing)')
      .option('--replace', 'write over the value that is there'),
    async ({ ports, terminal }, name: string, options: { secretsmanager?: boolean; replace?: boolean }) => {
      const { secretsmanager: managed = false, replace = false } = options;
      const plan = planStoreSecret(ports, { name, managed, replace });
      return writes({
        plan,
        carryOut: async () => carryOutStoreSecret(ports, plan, await readSecret(terminal)),
        print: ({ print }, reference) => print(reference),
        facts: () => ({ reference: plan.reference }),
      });
    },
  );
}
