/** Where a stack keeps its secrets; a function may read those of its own stack alone. */

const namePattern = /^[A-Za-z0-9_.-]+(\/[A-Za-z0-9_.-]+)*$/;

export const isSecretName = (name: string): boolean => namePattern.test(name) && name.length <= 200;

/** The name of a parameter of SSM. */
export const parameterName = (stack: string, name: string): string => `/relay/${stack}/${name}`;

/** The name of a secret of Secrets Manager. */
export const managedSecretName = (stack: string, name: string): string => `${stack}/${name}`;

export const isOfStack = (reference: string, stack: string): boolean =>
  ['env:', `ssm:${parameterName(stack, '')}`, `secretsmanager:${managedSecretName(stack, '')}`].some(
    (prefix) => reference.startsWith(prefix),
  );
