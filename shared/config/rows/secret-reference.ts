/**
 * References to secrets. Credentials are kept in a secret store; a row holds only a reference. A function may
 * read only the secrets of its own stack.
 */

import { attributeOf } from './read-row.ts';

export interface ReferenceRules {
  /** true on the local stack: loopback addresses and `env:NAME` are allowed too. */
  local: boolean;
  /** Names of variables that `env:` may read, `*` at an end for all that begin so. Absent: known to the stack alone. */
  envSecrets?: readonly string[] | undefined;
}

/** What every local stack may read. */
export const usualVariable = 'OPENAI_API_KEY';

/** Whoever can write a row could else send any variable of the stack's owner to an address of theirs. */
export const mayReadVariable = (name: string, allowed: readonly string[]): boolean =>
  allowed.some((one) => (one.endsWith('*') ? name.startsWith(one.slice(0, -1)) : name === one));

/** The line that allows a variable. Of what has not the usual form of a name, without it. */
export const allowVariable = (name: string): string =>
  `RELAY_ENV_SECRETS=${/^[A-Z_][A-Z0-9_]{0,63}$/.test(name) ? name : '<its name>'}`;

const notAllowed = 'found an env: reference to a variable that rows may not read';

/** Which variables its owner allowed is known to the running stack alone. Elsewhere the mark that it left in a row says it. */
export function markOfVariable(raw: unknown, { local }: ReferenceRules): string | undefined {
  const mark = attributeOf(raw, '_problem');
  return local && typeof mark === 'string' && mark.includes(notAllowed) ? mark : undefined;
}

const parameter = /^ssm:\/relay\/[A-Za-z0-9_.-]+(\/[A-Za-z0-9_.-]+)+$/;
const managed = /^secretsmanager:[A-Za-z0-9_+=.@-]+(\/[A-Za-z0-9_+=.@-]+)+$/;
const environment = /^env:[A-Za-z_][A-Za-z0-9_]*$/;

const howToStore =
  'store the value with `npx --no relay-ops secret new <name> --stack <stack>`, which reads it from standard input, ' +
  'and write ssm:/relay/<stack>/<name> here';

/** Why a reference is not usable; undefined if it is. Never quotes it: it may be the secret itself. */
export function referenceProblem(reference: string, rules: ReferenceRules): string | undefined {
  if (parameter.test(reference) || managed.test(reference)) return undefined;
  if (reference.startsWith('ssm:')) {
    return 'found an ssm: reference outside /relay/<stack>/, wanted ssm:/relay/<stack>/<name>';
  }
  if (reference.startsWith('secretsmanager:')) {
    return 'found a secretsmanager: reference without a stack, wanted secretsmanager:<stack>/<name>';
  }
  if (environment.test(reference)) {
    if (!rules.local) return `found an env: reference, which works on a local stack only; ${howToStore}`;
    const name = reference.slice('env:'.length);
    return rules.envSecrets === undefined || mayReadVariable(name, rules.envSecrets)
      ? undefined
      : `${notAllowed}; start the stack with ${allowVariable(name)} to allow it`;
  }
  return (
    `found a value that is not a reference (not shown); ${howToStore}` +
    '; if it was a real key, replace it at the provider, since this table held it'
  );
}

const namePattern = /^[A-Za-z0-9_.-]+(\/[A-Za-z0-9_.-]+)*$/;

export const isSecretName = (name: string): boolean => namePattern.test(name) && name.length <= 200;

/** The name of a parameter in SSM. */
export const parameterName = (stack: string, name: string): string => `/relay/${stack}/${name}`;

/** The name of a secret in Secrets Manager. */
export const managedSecretName = (stack: string, name: string): string => `${stack}/${name}`;

export const isOfStack = (reference: string, stack: string): boolean =>
  ['env:', `ssm:${parameterName(stack, '')}`, `secretsmanager:${managedSecretName(stack, '')}`].some(
    (prefix) => reference.startsWith(prefix),
  );
