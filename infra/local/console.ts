/** The console of operators on this machine as it is deployed: its stack, an issuer to log in at, and people of each role. */
import path from 'node:path';
import type { RelayConsole } from '../stack/constructs/hosted-console.ts';
import { startIssuer, type LocalIssuer } from './oidc.ts';

const clientId = 'relay-console';
const clientSecret = 'local';
const secretVariable = 'RELAY_CONSOLE_SECRET';

const supportRefundYuanADay = 1;
const roles = { viewer: ['viewers'], support: ['support'], operator: ['olga@example.com'] };
const oidc = {
  issuer: 'https://issuer.example.com',
  clientId,
  clientSecret: 'ssm:/relay/relay/console/oidc',
};

const createVerifiedClaims = (email: string, groups: string[] = []) => ({
  email,
  email_verified: true,
  groups,
});
const people = {
  olga: createVerifiedClaims('olga@example.com'),
  sam: createVerifiedClaims('sam@example.com', ['support']),
  vera: createVerifiedClaims('vera@example.com', ['viewers']),
  nobody: createVerifiedClaims('nobody@example.com'),
};

/** The option, as a stage would have it. */
export const consoleOption = { oidc, roles, supportRefundYuanADay };

/** The stack with the option `console`, for which the usual one is not deployed. Returns its folder. */
export async function synthesizeConsole(templateFolder: string): Promise<string> {
  // The toolkit takes seconds to load, and other starts need none.
  const { createApp } = await import('../stack/create-app.ts');
  const outputFolder = path.join(templateFolder, 'console');
  createApp({ outputFolder, options: { console: consoleOption }, validate: false }).app.synth();
  return outputFolder;
}

export const startLocalIssuer = (): Promise<LocalIssuer> => startIssuer({ clientId, clientSecret, people });

/** Variables that replace those of the deployed issuer. */
export function buildConsoleVariables(
  { issuer }: LocalIssuer,
  environment: Record<string, string>,
): Record<string, string> {
  const own: RelayConsole = {
    oidc: { issuer, clientId, clientSecret: `env:${secretVariable}` },
    roles,
    supportRefundYuanADay,
  };
  return {
    CONSOLE: JSON.stringify(own),
    [secretVariable]: clientSecret,
    RELAY_ENV_SECRETS: [environment['RELAY_ENV_SECRETS'] || [], `console/${secretVariable}`].flat().join(','),
  };
}
