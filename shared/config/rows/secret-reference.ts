/**
 * References to secrets. Credentials are kept in a secret store; a row holds only a reference, whose path says what the secret is for and
 * to which host it may be sent. Whoever edits rows could otherwise send any secret of the stack to a host of theirs.
 */

import { attributeOf } from './read-row.ts';

export const secretPurposes = ['channels', 'payments', 'search', 'alerts', 'console', 'canary'] as const;
export type SecretPurpose = (typeof secretPurposes)[number];

/** What a secret is read for. */
export interface SecretUse {
  purpose: SecretPurpose;
  /** The host, with its port, that the secret is sent to. Undefined: it only signs, or no row says where it goes. */
  host?: string | undefined;
}

/** A reference in a row. */
export interface NamedSecret extends SecretUse {
  reference: string;
  /** The attribute that names it: `value.stripe.link_secret`. */
  at: string;
  /** The row's key. */
  row: string;
}

export interface ReferenceRules {
  /** true on the local stack: loopback addresses and `env:NAME` are allowed too. */
  local: boolean;
  /** The variables that `env:` may read, as `mayReadVariable` takes them. Absent: known to the stack alone. */
  envSecrets?: readonly string[] | undefined;
  /** Whose secret a reference is by settings and deployment, whatever its path says. Absent: not known. */
  owners?: ReadonlyMap<string, SecretPurpose> | undefined;
  /** The uses of unbound references that may stay, by `useKey`. Absent: all may. */
  oldUses?: ReadonlySet<string> | undefined;
}

/** What every local stack may read. */
export const usualVariable = 'OPENAI_API_KEY';

/**
 * Whoever can write a row could else send any variable of the stack's owner to an address of theirs.
 * @param allowed `NAME`, or with what it is for: `payments/NAME`, `channels/<host>/NAME`; `*` at an end for all that begin so
 */
export function mayReadVariable(name: string, allowed: readonly string[], use: SecretUse): boolean {
  const fitting = allowed.filter((entry) => {
    const pattern = entry.slice(entry.lastIndexOf('/') + 1);
    return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
  });
  const bound = fitting.filter((entry) => entry.includes('/'));
  if (bound.length === 0) return fitting.length > 0;
  return bound.some((entry) => {
    const [purpose, host, name] = entry.split('/');
    const isAnywhere = name === undefined || use.host === undefined;
    return purpose === use.purpose && (isAnywhere || host === hostSegment(use.host ?? ''));
  });
}

/** The line that allows a variable. Of what has not the usual form of a name, without it. */
export const allowVariable = (name: string): string =>
  `RELAY_ENV_SECRETS=${/^[A-Z_][A-Z0-9_]{0,63}$/.test(name) ? name : '<its name>'}`;

const notAllowed = 'found an env: reference to a variable that rows may not read';
const notItsOwn = 'found a secret of ';

/** What its owner allowed, and what other rows name, the running stack knows. Elsewhere the mark that it left in a row says it. */
export function markOfReference(raw: unknown, { local }: ReferenceRules): string | undefined {
  const mark = attributeOf(raw, '_problem');
  const isOfStack = (text: string): boolean =>
    (local && text.includes(notAllowed)) || text.includes(notItsOwn);
  return typeof mark === 'string' && isOfStack(mark) ? mark : undefined;
}

const parameter = /^ssm:\/relay\/[A-Za-z0-9_.-]+(\/[A-Za-z0-9_.-]+)+$/;
const managed = /^secretsmanager:[A-Za-z0-9_+=.@-]+(\/[A-Za-z0-9_+=.@-]+)+$/;
const environment = /^env:[A-Za-z_][A-Za-z0-9_]*$/;
const store = /^(?:ssm:\/relay\/|secretsmanager:)[^/]+\//;

/** A path of both stores has no other characters. A full stop at the end of a name leads to the same host. */
const hostSegment = (host: string): string => host.replace(/\.+(?=$|:)/, '').replaceAll(/[^a-z0-9.-]/g, '_');
/** Names chosen before paths had a host have no dot, mostly. */
const looksLikeHost = /\.|^_/;

/** `channels/<host>/<name>` and the like, as it is stored below the stack's name. */
export const secretPathOf = ({ purpose, host }: SecretUse, name: string): string =>
  [purpose, host === undefined ? [] : hostSegment(host), name].flat().join('/');

/** A path below the stack's name, for people who store it. Undefined: it is none. */
export function boundPath(path: string): SecretUse | undefined {
  const [first, host, ...name] = path.split('/');
  const purpose = secretPurposes.find((each) => each === first);
  if (purpose === undefined || host === undefined) return undefined;
  return { purpose, host: name.length > 0 && looksLikeHost.test(host) ? host : undefined };
}

/** Whether rows can use what is stored there. Keys of channels and search providers are always sent to a host, so their paths need one. */
export function isStorablePath(path: string): boolean {
  const { purpose, host } = boundPath(path) ?? {};
  if (purpose === undefined) return false;
  return host === undefined ? purpose !== 'channels' && purpose !== 'search' : host === hostSegment(host);
}

/**
 * Whether the path of a reference allows a use. `unbound`: it was stored before paths named purpose and host. Any `env:` reference is
 * bound: `mayReadVariable` decides.
 */
export function bindingOf(reference: string, use: SecretUse): 'bound' | 'unbound' | 'purpose' | 'host' {
  if (reference.startsWith('env:')) return 'bound';
  const found = boundPath(reference.replace(store, ''));
  if (found === undefined) return 'unbound';
  if (found.purpose !== use.purpose) return 'purpose';
  if (use.host === undefined) return 'bound';
  if (found.host === undefined) return 'unbound';
  return found.host === hostSegment(use.host) ? 'bound' : 'host';
}

export const isUnbound = (named: NamedSecret): boolean => bindingOf(named.reference, named) === 'unbound';

export const useKey = ({ purpose, row, reference, host = '' }: NamedSecret): string =>
  JSON.stringify([purpose, row, reference, host]);

const howToStore = (use: SecretUse): string => {
  const path = secretPathOf(use, '<name>');
  return `store the value with \`npx --no relay-ops secret new ${path} --stack <stack>\`, which reads it from standard input, and write ssm:/relay/<stack>/${path} here`;
};

/** Why a reference is not usable; undefined if it is. Never quotes it: it may be the secret itself. */
export function referenceProblem(named: NamedSecret, rules: ReferenceRules): string | undefined {
  const { reference, ...use } = named;
  const fix = howToStore(use);
  if (environment.test(reference)) {
    if (!rules.local) return `found an env: reference, which works on a local stack only; ${fix}`;
    const name = reference.slice('env:'.length);
    if (rules.envSecrets && !mayReadVariable(name, rules.envSecrets, use))
      return `${notAllowed}; start the stack with ${allowVariable(name)} to allow it`;
  } else if (!parameter.test(reference) && !managed.test(reference)) return formProblem(reference, fix);
  const owner = rules.owners?.get(reference) ?? use.purpose;
  if (owner !== use.purpose) return `${notItsOwn}${owner}, wanted one of ${use.purpose}: ${fix}`;
  const binding = bindingOf(reference, use);
  if (binding === 'purpose') return `${notItsOwn}another purpose, wanted one of ${use.purpose}: ${fix}`;
  if (binding === 'host') return `found a secret that was stored for another host than ${use.host}: ${fix}`;
  if (binding === 'unbound' && rules.oldUses && !rules.oldUses.has(useKey(named)))
    return `found a reference whose path names no purpose${use.host === undefined ? '' : ' and host'}: ${fix}`;
  return undefined;
}

function formProblem(reference: string, fix: string): string {
  if (reference.startsWith('ssm:')) return `found an ssm: reference outside /relay/<stack>/: ${fix}`;
  if (reference.startsWith('secretsmanager:'))
    return `found a secretsmanager: reference without a stack: ${fix}`;
  return (
    `found a value that is not a reference (not shown); ${fix}` +
    '; if it was a real key, replace it at the provider, since this table held it'
  );
}

/** What is wrong, and what should be moved, each as `attribute: ...`, once. */
export function checkReferences(
  named: readonly NamedSecret[],
  rules: ReferenceRules,
): Record<'problems' | 'warnings', string[]> {
  const problems = named.flatMap((each) => {
    const problem = referenceProblem(each, rules);
    return problem === undefined ? [] : [`${each.at}: ${problem}`];
  });
  const warnings = named
    .filter(isUnbound)
    .map(
      ({ at }) =>
        `${at}: was stored before secrets had a purpose; \`npx --no relay-ops secret move --stack <stack>\` moves it`,
    );
  return { problems: [...new Set(problems)], warnings: [...new Set(warnings)] };
}

/** The end of a path, as people may write it in place of a reference. What is longer may be the key itself, which must not come into a row. */
export const storedName = /^(?!sk-)[\w.-]{1,24}$/;

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
