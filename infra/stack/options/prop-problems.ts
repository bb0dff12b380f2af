/**
 * Checks props of the construct with the schemas of the options. The package bundles this file with everything it imports, because
 * it depends on no other package. So the signature must not use a type of another file.
 */
import {
  checkOptions,
  findFieldProblems,
  fieldsOf,
  describeUnknownName,
  type FieldProblem,
} from './option-problems.ts';
import type { StageOptions } from './option-table.ts';

/** Only the prop's name is checked, because the construct or CDK checks the value. */
export const nameOnly = Symbol('nameOnly');

/** Rejects text, such as an ARN, where CDK expects an object. */
export const cdkObject = Symbol('cdkObject');

/** Maps each prop to the option whose rules check it. A map has the rules of the prop's fields, which no option has in this form. */
export interface PropRules {
  readonly [prop: string]: string | typeof nameOnly | typeof cdkObject | PropRules;
}

type IsKnown = (value: unknown) => boolean;
type Props = Readonly<Record<string, unknown>>;

/**
 * @param isKnown returns false for values that only CloudFormation can resolve
 * @param region the construct's region, if it is known at synthesis
 * @returns one line for each problem
 */
export function findPropProblems(
  props: Props,
  rules: PropRules,
  { isKnown, region }: { isKnown: IsKnown; region?: string },
): string[] {
  const checked = listChecked(props, rules, isKnown);
  const place: Checked[] = region === undefined ? [] : [['region', 'region', region]];
  const problems = [...findProblems(props, rules, isKnown), ...place.flatMap(problemsOf)];
  if (problems.length > 0) return problems;
  const given = [...listUnchecked(props, rules, isKnown), ...checked];
  const options = Object.fromEntries([...given, ...place].map(([, option, value]) => [option, value]));
  const propOf = new Map(given.map(([name, option]) => [option, name]));
  return checkOptions(options as StageOptions).map((each) => nameByProp(each, propOf));
}

type Checked = [prop: string, option: string, value: unknown];

const ruleOf = (rules: PropRules, name: string) => (Object.hasOwn(rules, name) ? rules[name] : undefined);

function optionOf(rules: PropRules, name: string): string | undefined {
  const rule = ruleOf(rules, name);
  return typeof rule === 'string' ? rule : undefined;
}

/** Returns false for objects of CDK. */
export function isPlain(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return true;
  const form: unknown = Object.getPrototypeOf(value);
  // Jest gives each test file its own `Object.prototype`, and parsers create objects without one.
  return form === null || Object.getPrototypeOf(form) === null;
}

const listChecked = (props: Props, rules: PropRules, isKnown: IsKnown): Checked[] =>
  Object.entries(props).flatMap(([name, value]): Checked[] => {
    const option = optionOf(rules, name);
    if (option === undefined || value === undefined || !isPlain(value)) return [];
    const said = removeObjects(value, fieldsOf(option));
    return isKnown(said) ? [[name, option, said]] : [];
  });

/** Objects of CDK, and lists that only CloudFormation can resolve. Only their combination with others is checked. */
const listUnchecked = (props: Props, rules: PropRules, isKnown: IsKnown): Checked[] =>
  Object.entries(props).flatMap(([name, value]): Checked[] => {
    const option = optionOf(rules, name);
    if (option === undefined) return [];
    return !isPlain(value) || (Array.isArray(value) && !isKnown(value)) ? [[name, option, value]] : [];
  });

/** Removes fields that hold an object of CDK, such as a VPC, where an option has a name. */
const removeObjects = (value: unknown, fields: readonly string[]): unknown =>
  typeof value !== 'object' || value === null || Array.isArray(value)
    ? value
    : Object.fromEntries(
        Object.entries(value).filter(([field, each]) => isPlain(each) || !fields.includes(field)),
      );

/** Lists unknown names, at the top and in maps, and the problems of each value by itself. */
function findProblems(props: Props, rules: PropRules, isKnown: IsKnown): string[] {
  const names = Object.entries(props).flatMap(([name, value]) => {
    const rule = ruleOf(rules, name);
    if (rule === undefined) return [`${name}: ${describeUnknownName(name, Object.keys(rules), 'a prop')}`];
    if (rule === cdkObject && typeof value === 'string')
      return [`${name}: found "${value}", expected an object of CDK`];
    if (typeof rule !== 'object' || typeof value !== 'object' || value === null) return [];
    return findProblems({ ...value }, rule, isKnown).map((problem) => `${name}.${problem}`);
  });
  return [...names, ...listChecked(props, rules, isKnown).flatMap(problemsOf)];
}

const problemsOf = ([name, option, value]: Checked): string[] =>
  findFieldProblems(option, value).map((each) => nameByProp(each, new Map([[option, name]])));

function nameByProp({ field, problem }: FieldProblem, propOf: Map<string, string>): string {
  const [option = '', ...rest] = field.split(/(?=[.[])/);
  return `${[propOf.get(option) ?? option, ...rest].join('')}: ${problem}`;
}
