import type { Command } from 'commander';
import { openPrintingSession, type Session } from '../session/session.ts';
import type { CommandContext } from './command-context.ts';
import { askHidden, isAttended, readInput, remark, say } from './terminal/terminal.ts';

const examples = `
Rows name a secret by its reference; the value is stored in AWS and shown by no command. The name is yours to choose:
\`openai\` becomes /relay/<stack>/openai. On a local stack there is no store: rows have env:NAME there.

Examples:
  printf %s "$OPENAI_API_KEY" | npm run ops -- secret put openai --stack relay
  npm run ops -- secret put openai --replace --stack relay`;

interface PutSecretOptions {
  secretsmanager?: boolean;
  replace?: boolean;
}

export function addSecretCommands(program: Command, _context: CommandContext): void {
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
    .action(async (name: string, _options, command: Command) =>
      putSecret(await openPrintingSession(command), name, command.opts()),
    );
}

async function putSecret(session: Session, name: string, options: PutSecretOptions): Promise<void> {
  const { secretsmanager: managed = false, replace = false } = options;
  const value = session.target.local ? '' : await readSecret();
  say(await session.secrets.put(name, value, { managed, replace }));
  remark(
    replace
      ? 'It is stored. Functions read it anew within 5 minutes, and at once after the upstream refused the old one.'
      : 'It is stored. Write this reference into a row, as `channel add --secret` does.',
  );
}

/** From the terminal without an echo, else all of standard input. */
export const readSecret = async (): Promise<string> =>
  isAttended() ? askHidden("The upstream's key?") : readInput("The upstream's key");
