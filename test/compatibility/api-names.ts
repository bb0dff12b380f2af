/** The names in an OpenAPI document: fields of requests, and of answers by status. Fields that webhooks send count as answers. */
import type { Names } from './declared-names.ts';
import { mergeNames } from './schema-names.ts';

interface Schema {
  $ref?: string;
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
}

interface Content {
  content?: Record<string, { schema?: Schema }>;
}

interface Parameter {
  $ref?: string;
  name: string;
  in: string;
  required?: boolean;
}

interface Operation {
  parameters?: Parameter[];
  requestBody?: Content & { $ref?: string };
  responses?: Record<string, Content & { $ref?: string; headers?: Record<string, unknown> }>;
}

interface Document {
  paths?: Record<string, Record<string, Operation>>;
  webhooks?: Record<string, Record<string, Operation>>;
}

/** Schemas that contain themselves must end. */
const depthMax = 8;

export function apiNames(given: unknown): { requests: Names; answers: Names } {
  const document = given as Document;
  const resolve = <Value extends { $ref?: string }>(value: Value | undefined): Value | undefined => {
    if (value?.$ref === undefined) return value;
    const keys = value.$ref.replace(/^#\//, '').split('/');
    return keys.reduce<unknown>(
      (found, key) => (found as Record<string, unknown> | undefined)?.[key.replaceAll('~1', '/')],
      document,
    ) as Value;
  };

  function fields(schema: Schema | undefined, name: string, depth = 0): Names {
    const found = resolve(schema);
    if (!found || depth > depthMax) return {};
    const { properties = {}, required = [], items } = found;
    const parts = [found.anyOf, found.oneOf, found.allOf].flatMap((each) => each ?? []);
    const names: Names = {};
    for (const [each, value] of Object.entries(properties)) {
      const optional = required.includes(each) ? [] : ['undefined'];
      names[`${name}.${each}`] = kinds(value).concat(optional).join(' | ');
      Object.assign(names, fields(value, `${name}.${each}`, depth + 1));
    }
    return mergeNames([
      names,
      fields(items, `${name}[]`, depth + 1),
      ...parts.map((part) => fields(part, name, depth + 1)),
    ]);
  }

  function kinds(schema: Schema, depth = 0): string[] {
    const found = resolve(schema) ?? {};
    const parts = [found.anyOf, found.oneOf, found.allOf].flatMap((each) => each ?? []);
    if (parts.length > 0 && depth < depthMax)
      return [...new Set(parts.flatMap((part) => kinds(part, depth + 1)))];
    const values = found.enum ?? ('const' in found ? [found.const] : undefined);
    return values?.map((value) => JSON.stringify(value)) ?? [found.type ?? 'any'].flat();
  }

  const requests: Names[] = [];
  const answers: Names[] = [];
  for (const [path, methods] of Object.entries(document.paths ?? {}))
    for (const [method, operation] of Object.entries(methods)) {
      if (!/^(get|post|put|patch|delete)$/.test(method)) continue;
      const route = `${method.toUpperCase()} ${path}`;
      requests.push({ [route]: 'route' });
      for (const parameter of operation.parameters ?? []) {
        const { name, in: place, required } = resolve(parameter) ?? parameter;
        requests.push({ [`${route} ${place} ${name}`]: `text${required ? '' : ' | undefined'}` });
      }
      for (const { schema } of Object.values(resolve(operation.requestBody)?.content ?? {}))
        requests.push(fields(schema, route));
      for (const [status, response] of Object.entries(operation.responses ?? {})) {
        const { content = {}, headers = {} } = resolve(response) ?? {};
        answers.push({ [`${route} ${status}`]: Object.keys(content).toSorted().join(' | ') || 'empty' });
        // All refusals have the same forms: one for every route and status would be 500 KB.
        const name = status < '400' ? `${route} ${status}` : 'refusal';
        for (const header of Object.keys(headers)) answers.push({ [`${name} header ${header}`]: 'text' });
        for (const { schema } of Object.values(content)) answers.push(fields(schema, name));
      }
    }
  for (const [event, methods] of Object.entries(document.webhooks ?? {}))
    for (const { parameters = [], requestBody } of Object.values(methods)) {
      const name = `webhook ${event}`;
      for (const parameter of parameters)
        answers.push({ [`${name} header ${(resolve(parameter) ?? parameter).name}`]: 'text' });
      for (const { schema } of Object.values(resolve(requestBody)?.content ?? {}))
        answers.push(fields(schema, name));
    }
  return { requests: mergeNames(requests), answers: mergeNames(answers) };
}
