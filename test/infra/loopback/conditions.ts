/** Resolves conditions, parameters and `Fn::If` in a template, as CloudFormation does before it processes resources. */
import { textOf, type DeployedTemplate } from './template.ts';

type Json = Record<string, unknown>;

export interface TemplateContext {
  /** Parameter values of the change set. */
  parameters: ReadonlyMap<string, string>;
  region: string;
  /** Finds an output of another stack, also in another region. Undefined if missing. */
  stackOutput: (of: { StackName: string; Region: string; OutputName: string }) => string | undefined;
}

export function withoutConditions(
  template: DeployedTemplate,
  { parameters: given, region, stackOutput }: TemplateContext,
): DeployedTemplate {
  const {
    Conditions = {},
    Mappings = {},
    Parameters = {},
    ...others
  } = template as DeployedTemplate & {
    Conditions?: Record<string, unknown>;
    Mappings?: Record<string, Record<string, Json>>;
  };
  const parameters = Object.fromEntries(
    Object.entries(Parameters).map(([name, parameter]) => [
      name,
      { ...parameter, Default: given.get(name) ?? parameter.Default },
    ]),
  );
  const decide = (value: unknown): boolean => {
    const [[name, inner] = ['', undefined]] = Object.entries(value as Json);
    const list = inner as unknown[];
    switch (name) {
      case 'Condition':
        return decide(Conditions[String(inner)]);
      case 'Fn::Equals':
        return text(list[0]) === text(list[1]);
      case 'Fn::Not':
        return !decide(list[0]);
      case 'Fn::And':
        return list.every(decide);
      case 'Fn::Or':
        return list.some(decide);
      default:
        throw new Error(`Template format error: condition ${name} is not known`);
    }
  };
  const text = (value: unknown): string => {
    if (typeof value !== 'object' || value === null) return String(value);
    const [[name, inner] = ['', undefined]] = Object.entries(value as Json);
    const pseudo: Record<string, string> = { 'AWS::Partition': 'aws', 'AWS::Region': region };
    if (name === 'Ref') return pseudo[String(inner)] ?? textOf(parameters[String(inner)]?.Default ?? '');
    const [separator, items] = inner as [string, unknown];
    const list = (items as Json)['Ref'] === undefined ? (items as unknown[]).map(text) : [text(items)];
    return list.join(separator);
  };
  const strip = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(strip);
    if (typeof value !== 'object' || value === null) return value;
    const found = (value as Json)['Fn::FindInMap'];
    if (found !== undefined) {
      const [map = '', first = '', second = ''] = (found as unknown[]).map(text);
      return Mappings[map]?.[first]?.[second];
    }
    const output = (value as Json)['Fn::GetStackOutput'] as Parameters<typeof stackOutput>[0] | undefined;
    if (output !== undefined) {
      const known = stackOutput(output);
      if (known === undefined)
        throw new Error(`Stack ${output.StackName} in ${output.Region} has no output ${output.OutputName}`);
      return known;
    }
    const chosen = (value as Json)['Fn::If'];
    if (chosen !== undefined) {
      const [condition, yes, no] = chosen as [string, unknown, unknown];
      return strip(decide(Conditions[condition]) ? yes : no);
    }
    return Object.fromEntries(Object.entries(value as Json).map(([key, inner]) => [key, strip(inner)]));
  };
  const holds = ([, { Condition }]: [string, { Condition?: string }]): boolean =>
    Condition === undefined || decide(Conditions[Condition]);
  const kept = <Part extends object>(parts: Record<string, Part> = {}): Record<string, Part> =>
    Object.fromEntries(
      Object.entries(parts)
        .filter(holds)
        .map(([id, part]) => [id, strip(part) as Part]),
    );
  return {
    ...others,
    Parameters: parameters,
    Resources: kept(template.Resources),
    Outputs: kept(template.Outputs),
  };
}
