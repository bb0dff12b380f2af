/**
 * Evaluates an IAM policy document as AWS does: deny by default, and an explicit denial wins.
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html
 */

export interface Statement {
  Effect: 'Allow' | 'Deny';
  Action: string | string[];
  Resource: string | string[];
  Condition?: Record<string, Record<string, string | string[]>>;
}

export interface Access {
  action: string;
  /** An ARN; `*` if AWS defines no resource for the action. */
  resource: string;
  /** Values of the request's condition keys. */
  keys: Readonly<Record<string, readonly string[]>>;
}

export type Decision = { allowed: true; by: string[] } | { allowed: false; explicitly: boolean };

/** @returns `by`: the permissions that allowed it, as `permissionsOf` lists them */
export function evaluate(statements: readonly Statement[], access: Access): Decision {
  const matching = statements.filter((statement) => isFor(statement, access));
  if (matching.some(({ Effect }) => Effect === 'Deny')) return { allowed: false, explicitly: true };
  const by = matching.flatMap((statement) =>
    permissionsOf(statement).filter((permission) => {
      const [action = '', resource = ''] = permission.split(' ');
      return isLike(access.action, action) && isLike(access.resource, resource);
    }),
  );
  return by.length > 0 ? { allowed: true, by } : { allowed: false, explicitly: false };
}

/** Each action with each resource: `dynamodb:Scan arn:...`. */
export const permissionsOf = ({ Action, Resource }: Statement): string[] =>
  [Action].flat().flatMap((action) => [Resource].flat().map((resource) => `${action} ${resource}`));

function isFor({ Action, Resource, Condition = {} }: Statement, access: Access): boolean {
  if (![Action].flat().some((pattern) => isLike(access.action, pattern))) return false;
  if (![Resource].flat().some((pattern) => isLike(access.resource, pattern))) return false;
  return Object.entries(Condition).every(([operator, tests]) =>
    Object.entries(tests).every(([key, wanted]) => holds({ operator, key, wanted: [wanted].flat() }, access)),
  );
}

interface Test {
  operator: string;
  key: string;
  wanted: string[];
}

/** An unknown operator is an error: it must not count as fulfilled. */
function holds({ operator, key, wanted }: Test, { keys }: Access): boolean {
  const values = keys[key] ?? [];
  const fits = (value: string): boolean => wanted.some((pattern) => isLike(value, pattern));
  switch (operator) {
    // True for a request without the key, as in AWS.
    case 'ForAllValues:StringLike':
      return values.every(fits);
    case 'Null':
      return wanted.includes(String(values.length === 0));
    case 'StringLike':
      return values.length === 1 && fits(String(values[0]));
    case 'StringEquals':
      return values.length === 1 && wanted.includes(String(values[0]));
    default:
      throw new Error(`a policy has the condition ${operator}, which this double does not know`);
  }
}

/** `*` matches any text, `?` one character. */
function isLike(text: string, pattern: string): boolean {
  const source = pattern
    .replaceAll(/[\\^$.|+()[\]{}]/g, String.raw`\$&`)
    .replaceAll('*', '.*')
    .replaceAll('?', '.');
  return new RegExp(`^${source}$`, 's').test(text);
}
