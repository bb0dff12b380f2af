import type { JsonSchema } from './request.ts';

/** Arguments (JSON text) that match a schema, made from the user's text. */
export const argumentsFor = (schema: JsonSchema | undefined, said: string): string =>
  JSON.stringify(schema === undefined ? {} : objectOf(schema, said, 0));

const depthMax = 6;

function objectOf(
  { properties = {}, required }: JsonSchema,
  said: string,
  depth: number,
): Record<string, unknown> {
  const wanted = required ?? Object.keys(properties);
  return Object.fromEntries(
    wanted.map((name) => [name, valueOf(properties[name] ?? {}, { name, said, depth: depth + 1 })]),
  );
}

interface Place {
  /** Name of the property whose value is made. */
  name: string;
  said: string;
  depth: number;
}

function valueOf(schema: JsonSchema, place: Place): unknown {
  const { name, said, depth } = place;
  if (schema.const !== undefined) return schema.const;
  if (schema.enum !== undefined)
    return schema.enum.find((choice) => said.includes(String(choice))) ?? schema.enum[0];
  if (schema.default !== undefined) return schema.default;
  if (depth > depthMax) return null;
  if (schema.anyOf?.[0]) return valueOf(schema.anyOf[0], { ...place, depth: depth + 1 });
  switch ([schema.type ?? []].flat()[0] ?? 'string') {
    case 'object':
      return objectOf(schema, said, depth);
    case 'array':
      return [valueOf(schema.items ?? {}, { ...place, depth: depth + 1 })];
    case 'boolean':
      return true;
    case 'number':
    case 'integer':
      return Number(/-?\d+/.exec(said)?.[0] ?? schema.minimum ?? 1);
    case 'null':
      return null;
    default:
      return textFor(name, said);
  }
}

function textFor(name: string, said: string): string {
  if (/city|place|location|country/i.test(name))
    return /\b(?:in|at|for) (\p{Lu}\p{L}+)/u.exec(said)?.[1] ?? 'Paris';
  // Coding agents run this in a shell, so it must not contain the user's text.
  if (/^(cmd|command)$/i.test(name)) return 'ls';
  if (/date|day/i.test(name)) return '2026-01-31';
  return said;
}
