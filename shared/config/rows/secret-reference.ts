/**
 * References to secrets. A secret store holds the values, rows hold references. The path of a reference names the purpose of the secret
 * and the host that may receive it. Otherwise anyone who edits rows could send any secret of the stack to a host of their own.
 */

import { isRecord } from '../../wire/json.ts';

export const secretPurposes = ['channels', 'payments', 'search', 'alerts', 'console', 'canary'] as const;
export type SecretPurpose = (typeof secretPurposes)[number];

export interface SecretUse {
  purpose: SecretPurpose;
  /** The host, with its port, that receives the secret. Missing if the secret only signs, or the host is unknown. */
  host?: string | undefined;
}

export interface NamedSecret extends SecretUse {
  reference: string;
  /** The attribute that holds the reference: `value.stripe.link_secret`. */
  at: string;
  /** The row's key. */
  row: string;
}

export interface ReferenceRules {
  /** true on a local stack, which also allows loopback addresses and `env:NAME`. */
  local: boolean;
  /** The variables that `env:` may read. Missing where only the running stack knows them. */
  envSecrets?: readonly string[] | undefined;
  /** The purpose of references that settings or deployment options name. It wins over the path. */
  owners?: ReadonlyMap<string, SecretPurpose> | undefined;
  /** Uses of unbound references that are still allowed, by `formatUseKey`. Without it, all are. */
  oldUses?: ReadonlySet<string> | undefined;
}

/** Every local stack may read this variable. */
export const usualVariable = 'OPENAI_API_KEY';

/**
 * Without this list, anyone who writes a row could send any variable of the operator's shell to a host of their own. An entry with a
 * purpose takes its variables away from entries without one.
 * @param allowed `NAME`, or bound to a use: `payments/NAME`, `channels/<host>/NAME`; a `*` at the end stands for any text
 */
export function mayReadVariable(name: string, allowed: readonly string[], use: SecretUse): boolean {
  const entries = allowed
    .map((entry) => entry.split('/'))
    .filter((parts) => {
      const pattern = parts.at(-1) ?? '';
      return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
    });
  const bound = entries.filter((parts) => parts.length > 1);
  if (bound.length === 0) return entries.length > 0;
  return bound.some((parts) => {
    const [purpose, host] = parts;
    const isForAnyHost = parts.length === 2 || use.host === undefined;
    return purpose === use.purpose && (isForAnyHost || host === formatHost(use.host ?? ''));
  });
}

/** The setting that allows a variable. Does not quote an unusual name, which may be a key that was typed in by mistake. */
export const allowVariable = (name: string): string =>
  `RELAY_ENV_SECRETS=${/^[A-Z_][A-Z0-9_]{0,63}$/.test(name) ? name : '<its name>'}`;

const notAllowed = 'found an env: reference to a variable that rows cannot read';
const notItsOwn = 'found a secret of ';

/** Only the running stack knows its variables and deployment options, so the tool reads the `_problem` that the stack wrote. */
export function findStackProblem(raw: unknown, { local }: ReferenceRules): string | undefined {
  const mark = isRecord(raw) ? raw['_problem'] : undefined;
  const isOfStack = (text: string): boolean =>
    (local && text.includes(notAllowed)) || text.includes(notItsOwn);
  return typeof mark === 'string' && isOfStack(mark) ? mark : undefined;
}

const parameter = /^ssm:\/relay\/[A-Za-z0-9_.-]+(\/[A-Za-z0-9_.-]+)+$/;
const managed = /^secretsmanager:[A-Za-z0-9_+=.@-]+(\/[A-Za-z0-9_+=.@-]+)+$/;
const environment = /^env:[A-Za-z_][A-Za-z0-9_]*$/;
const store = /^(?:ssm:\/relay\/|secretsmanager:)[^/]+\//;

/** Both stores allow these characters in a path. A trailing dot is dropped, because it leads to the same host. */
const formatHost = (host: string): string => host.replace(/\.+(?=$|:)/, '').replaceAll(/[^a-z0-9.-]/g, '_');
/** A host is public, so it has a dot or is an IPv6 address. Old names such as `channels/team-a/openai` rarely have a dot there. */
const looksLikeHost = /\.|^_/;

export const buildSecretPath = ({ purpose, host }: SecretUse, name: string): string =>
  [purpose, host === undefined ? [] : formatHost(host), name].flat().join('/');

export function parseSecretPath(path: string): SecretUse | undefined {
  const [first, host, ...name] = path.split('/');
  const purpose = secretPurposes.find((each) => each === first);
  if (purpose === undefined || host === undefined) return undefined;
  return { purpose, host: name.length > 0 && looksLikeHost.test(host) ? host : undefined };
}

/** Channels and search providers send their secrets to a host, so the path must name it. */
export function isStorablePath(path: string): boolean {
  const { purpose, host } = parseSecretPath(path) ?? {};
  if (purpose === undefined) return false;
  return host === undefined ? purpose !== 'channels' && purpose !== 'search' : host === formatHost(host);
}

/**
 * Compares the path of a reference with a use. `purpose` or `host`: the path names another one. `unbound`: the path is older than this rule
 * and names none. `env:` references count as bound, because `mayReadVariable` decides about them.
 */
export function compareBinding(reference: string, use: SecretUse): 'bound' | 'unbound' | 'purpose' | 'host' {
  if (reference.startsWith('env:')) return 'bound';
  const found = parseSecretPath(reference.replace(store, ''));
  if (found === undefined) return 'unbound';
  if (found.purpose !== use.purpose) return 'purpose';
  if (use.host === undefined) return 'bound';
  if (found.host === undefined) return 'unbound';
  return found.host === formatHost(use.host) ? 'bound' : 'host';
}

export const isUnbound = (named: NamedSecret): boolean =>
  compareBinding(named.reference, named) === 'unbound';

export const formatUseKey = ({ purpose, row, reference, host = '' }: NamedSecret): string =>
  JSON.stringify([purpose, row, reference, host]);

const explainHowToStore = (use: SecretUse): string => {
  const path = buildSecretPath(use, '<name>');
  return `store the secret with \`npx --no relay-ops secret new ${path} --stack <stack>\` and use ssm:/relay/<stack>/${path} here`;
};

/** Never quotes the reference: someone may have typed the secret itself. */
export function findReferenceProblem(named: NamedSecret, rules: ReferenceRules): string | undefined {
  const { reference, ...use } = named;
  const fix = explainHowToStore(use);
  if (environment.test(reference)) {
    if (!rules.local) return `found an env: reference, which only works on a local stack; ${fix}`;
    const name = reference.slice('env:'.length);
    if (rules.envSecrets && !mayReadVariable(name, rules.envSecrets, use))
      return `${notAllowed}; start the stack with ${allowVariable(name)} to allow it`;
  } else if (!parameter.test(reference) && !managed.test(reference)) return findFormProblem(reference, fix);
  const owner = rules.owners?.get(reference) ?? use.purpose;
  if (owner !== use.purpose) return `${notItsOwn}${owner}, expected one of ${use.purpose}: ${fix}`;
  const binding = compareBinding(reference, use);
  if (binding === 'purpose') return `${notItsOwn}another purpose, expected one of ${use.purpose}: ${fix}`;
  if (binding === 'host') return `found a secret stored for another host than ${use.host}: ${fix}`;
  if (binding === 'unbound' && rules.oldUses && !rules.oldUses.has(formatUseKey(named)))
    return `found a path without a purpose${use.host === undefined ? '' : ' and host'}: ${fix}`;
  return undefined;
}

function findFormProblem(reference: string, fix: string): string {
  if (reference.startsWith('ssm:')) return `found an ssm: reference outside /relay/<stack>/: ${fix}`;
  if (reference.startsWith('secretsmanager:'))
    return `found a secretsmanager: reference without a stack: ${fix}`;
  return (
    `found a value that is not a reference (hidden); ${fix}` +
    '; if it was a real key, revoke it at the provider, because this table has exposed it'
  );
}

/** Problems, and warnings about unbound references, each as `attribute: ...`, without duplicates. */
export function checkReferences(
  named: readonly NamedSecret[],
  rules: ReferenceRules,
): Record<'problems' | 'warnings', string[]> {
  const problems = named.flatMap((each) => {
    const problem = findReferenceProblem(each, rules);
    return problem === undefined ? [] : [`${each.at}: ${problem}`];
  });
  const warnings = named
    .filter(isUnbound)
    .map(
      ({ at }) =>
        `${at}: has a path without a purpose; move it with \`npx --no relay-ops secret move --stack <stack>\``,
    );
  return { problems: [...new Set(problems)], warnings: [...new Set(warnings)] };
}

/** The last part of a path, which people may type instead of a reference. Longer text may be the key itself, which must not reach a row. */
export const storedName = /^(?!sk-)[\w.-]{1,24}$/;

const namePattern = /^[A-Za-z0-9_.-]+(\/[A-Za-z0-9_.-]+)*$/;

export const isSecretName = (name: string): boolean => namePattern.test(name) && name.length <= 200;

export const formatParameterName = (stack: string, name: string): string => `/relay/${stack}/${name}`;

export const formatManagedSecretName = (stack: string, name: string): string => `${stack}/${name}`;

export const isOfStack = (reference: string, stack: string): boolean =>
  [
    'env:',
    `ssm:${formatParameterName(stack, '')}`,
    `secretsmanager:${formatManagedSecretName(stack, '')}`,
  ].some((prefix) => reference.startsWith(prefix));
