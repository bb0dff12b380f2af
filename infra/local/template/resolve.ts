import { StartError } from '../host/start-error.ts';

/** Values of Ref and Fn::GetAtt. Both throw StartError for a name that is not in the template. */
export interface References {
  ref(logicalId: string): unknown;
  attribute(logicalId: string, name: string): unknown;
  /** The value of `{{resolve:secretsmanager:<id>:SecretString:<jsonKey>::}}`. */
  secret(id: string, jsonKey: string): string;
}

export type Resolve = (value: unknown) => unknown;

export const intrinsicNames: string[] = [
  'Fn::GetAtt',
  'Fn::GetStackOutput',
  'Fn::Join',
  'Fn::Select',
  'Fn::Split',
  'Fn::Sub',
];

// The id may be an ARN with colons; the parts after SecretString contain none.
const dynamicReference = /\{\{resolve:([\w-]+):(.*?)\}\}/g;
const secretReference = /^(.+):SecretString:([^:]*):[^:]*:[^:]*$/;

/** Returns the function that replaces the intrinsics and dynamic references of a template value. */
export function createResolver(references: References): Resolve {
  const secrets = (text: string) =>
    text.replace(dynamicReference, (whole, service: string, rest: string) => {
      const match = secretReference.exec(rest);
      if (service !== 'secretsmanager' || match === null)
        throw new StartError(`unknown dynamic reference ${whole}`);
      return references.secret(match[1] ?? '', match[2] ?? '');
    });

  const resolve: Resolve = (value) => {
    if (typeof value === 'string') return secrets(value);
    if (Array.isArray(value)) return value.map(resolve).filter((item) => item !== undefined);
    if (typeof value !== 'object' || value === null) return value;
    const entries = Object.entries(value);
    const [first] = entries;
    if (entries.length === 1 && first !== undefined && (first[0] === 'Ref' || first[0].startsWith('Fn::')))
      return intrinsic(first[0], first[1]);
    return Object.fromEntries(
      entries.map(([key, inner]) => [key, resolve(inner)]).filter(([, inner]) => inner !== undefined),
    );
  };

  const attribute = (argument: unknown) => {
    const [id, name] = typeof argument === 'string' ? splitOnce(argument) : (argument as [string, string]);
    return references.attribute(id, name);
  };

  const substitute = (argument: unknown) => {
    const [text, values] = Array.isArray(argument)
      ? (argument as [string, Record<string, unknown>])
      : [String(argument), {} as Record<string, unknown>];
    const filled = text.replace(/\$\{([^!}][^}]*)\}/g, (_, name: string) => {
      if (name in values) return String(resolve(values[name]));
      return String(name.includes('.') ? attribute(name) : references.ref(name));
    });
    return secrets(filled.replaceAll('${!', '${'));
  };

  const intrinsic = (name: string, argument: unknown): unknown => {
    switch (name) {
      case 'Ref':
        return references.ref(String(argument));
      case 'Fn::GetAtt':
        return attribute(argument);
      case 'Fn::Sub':
        return substitute(argument);
      case 'Fn::Join': {
        const [separator, items] = argument as [string, unknown];
        // Dynamic references are resolved after joining, because a join often builds one from pieces.
        return secrets((resolve(items) as unknown[]).map(String).join(separator));
      }
      case 'Fn::Select': {
        const [index, items] = argument as [string | number, unknown];
        return (resolve(items) as unknown[])[Number(index)];
      }
      case 'Fn::Split': {
        const [separator, text] = argument as [string, unknown];
        return String(resolve(text)).split(separator);
      }
      case 'Fn::GetStackOutput': {
        // Of a stack at the edge, which one machine does not have: a name that leads nowhere.
        const { StackName, OutputName } = argument as Record<string, unknown>;
        return `${String(resolve(StackName))}.${String(resolve(OutputName))}`;
      }
      default:
        throw new StartError(`unknown intrinsic function ${name}`);
    }
  };

  return resolve;
}

function splitOnce(text: string): [string, string] {
  const dot = text.indexOf('.');
  return [text.slice(0, dot), text.slice(dot + 1)];
}
