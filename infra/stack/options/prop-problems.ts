/**
 * Checks props of the construct by the schemas of the options of the same name. The package holds this as one file with all
 * that it imports, as it brings no other package along: so no type of another file is part of its signature.
 */
import { optionChecks, fieldProblems } from './option-problems.ts';
import type { StageOptions } from './option-table.ts';

/** The option that is checked by, where the prop has another name. */
const optionOf: Readonly<Record<string, string>> = { defaultLimits: 'limits', webAclArn: 'webAcl' };
const propOf = new Map(Object.entries(optionOf).map(([prop, option]) => [option, prop]));

/** @param props by name, none of whose values is known only to CloudFormation. @returns a line for each problem */
export function propProblems(props: Readonly<Record<string, unknown>>): string[] {
  const options = Object.entries(props).flatMap(([name, value]): [string, unknown][] =>
    value === undefined ? [] : [[optionOf[name] ?? name, value]],
  );
  const problems = options.flatMap(([name, value]) => fieldProblems(name, value));
  // A host name without its certificate is an option's mistake, and cannot be a prop's.
  const { domain: _, ...others } = Object.fromEntries(options) as StageOptions;
  const all = problems.length > 0 ? problems : optionChecks(others);
  return all.map(({ field, problem }) => {
    const [option = '', ...rest] = field.split(/(?=[.[])/);
    return `${[propOf.get(option) ?? option, ...rest].join('')}: ${problem}`;
  });
}
