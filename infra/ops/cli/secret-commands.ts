/** The commands of `secret`. The value comes from standard input or a hidden answer, never from the command line. */
import type { Command } from 'commander';
import { carryOutStoreSecret, planStoreSecret } from '../../../shared/operate/channels/store-secret.ts';
import type { CommandContext } from './command/command-context.ts';
import type { Terminal } from './terminal/terminal.ts';

const examples = `
Rows name a secret by its reference; the value is stored in AWS and shown by no command. The name is yours to choose:
\`openai\` becomes /relay/<stack>/openai. On a local stack there is no store: rows have env:NAME there.

Examples:
  printf %s "$OPENAI_API_KEY" | npm run ops -- secret put openai --stack relay
  npm run ops -- secret put openai --replace --stack relay`;

export function addSecretCommands(program: Command, { terminal, onTables }: CommandContext): void {
  const secret = program
    .command('secret')
    .description('keys of upstreams, stored in AWS')
    .addHelpText('after', examples);

  secret
    .command('put')
    .description('store a value from standard input, encrypted, and print its reference')
    .argument('<name>', 'what it is called within the stack')
    .option('--secretsmanager', 'in Secrets Manager (default: SSM Parameter Store, which costs nothing)')
    .option('--replace', 'write over the value that is there')
    .action(
      onTables(async (ports, name: string, options: { secretsmanager?: boolean; replace?: boolean }) => {
        const { secretsmanager: managed = false, replace = false } = options;
        const plan = planStoreSecret(ports, { name, managed, replace });
        terminal.print(await carryOutStoreSecret(ports, plan, await readSecret(terminal)));
        plan.effect.forEach(terminal.remark);
      }),
    );
}

/** Reads a hidden line if a person uses the terminal, else all of standard input. */
export const readSecret = async ({ isAttended, askHidden, readInput }: Terminal): Promise<string> =>
  isAttended ? askHidden("The upstream's key?") : readInput("The upstream's key");
