/** Compares one exchange with the OpenAPI document: status, headers and answer, and the request's body if it was accepted. */
import { dereference, validate, type OutputUnit, type Schema } from '@cfworker/json-schema';
import { asRecord, isRecord, textIn, type JsonRecord } from '../../shared/wire/json.ts';
import { buildDocument } from './document.ts';

export interface Exchange {
  method: string;
  path: string;
  /** The JSON body, also as text. */
  body?: unknown;
  status: number;
  headers: Readonly<Record<string, string>>;
  text: string;
}

/** A document with the lookup of its schemas. */
export interface CheckedDocument {
  document: JsonRecord;
  schemas: Record<string, Schema | boolean>;
}

const base = 'https://document.test/';

export function prepareDocument(document: JsonRecord): CheckedDocument {
  return { document, schemas: dereference({ $id: base, ...document }) };
}

let prepared: CheckedDocument | undefined;

/** Throws an Error that lists how an exchange differs from the document. Exchanges at unknown paths pass. */
export function expectDocumented(exchange: Exchange): void {
  prepared ??= prepareDocument(buildDocument({ isClosed: true }));
  const problems = findProblems(exchange, prepared);
  if (problems.length > 0)
    throw new Error(
      `${exchange.method} ${exchange.path} differs from docs/openapi.json:\n${problems.join('\n')}`,
    );
}

export function findProblems(exchange: Exchange, checked: CheckedDocument): string[] {
  const operation = findOperation(exchange, checked.document);
  if (!operation) return [];
  const { status } = exchange;
  const body = exchange.body === '' ? undefined : exchange.body;
  const responses = asRecord(operation['responses']);
  const found = responses[status] ?? responses[`${Math.floor(status / 100)}XX`];
  if (!isRecord(found)) return [`status ${status} is not documented`];
  const answer = resolve(found, checked.document);
  const isAccepted = status < 300 && body !== undefined;
  const requested = asRecord(operation['requestBody']);
  return [
    ...(isAccepted
      ? validateContent('request', requested, 'application/json', [parseBody(body)], checked)
      : []),
    ...(status < 300 ? findUnknownHeaders(exchange, answer) : []),
    ...validateAnswer(exchange, answer, checked),
  ];
}

const parseBody = (body: unknown): unknown => (typeof body === 'string' ? JSON.parse(body) : body);

function findOperation({ method, path }: Exchange, document: JsonRecord): JsonRecord | undefined {
  const paths = asRecord(document['paths']);
  const template = Object.keys(paths)
    .toSorted((a, b) => Number(a.includes('{')) - Number(b.includes('{')))
    .find((each) => {
      // Ids of models have slashes.
      const id = each.startsWith('/v1/models/') ? '.+' : '[^/]+';
      return new RegExp(`^${each.replaceAll(/\{\w+\}/g, id)}$`).test(path);
    });
  const operation = template === undefined ? undefined : asRecord(paths[template])[method.toLowerCase()];
  return isRecord(operation) ? operation : undefined;
}

const resolve = (value: JsonRecord, document: JsonRecord): JsonRecord =>
  textIn(value['$ref'])
    .split('/')
    .slice(1)
    .reduce<JsonRecord>((inner, name) => asRecord(inner[name]), value['$ref'] ? document : value);

function findUnknownHeaders({ headers }: Exchange, answer: JsonRecord): string[] {
  const known = asRecord(answer['headers']);
  return Object.keys(headers)
    .filter((name) => /^(x-r|etag$|request-id$|retry-after$)/.test(name) && known[name] === undefined)
    .map((name) => `header ${name} is not documented`);
}

function validateAnswer({ headers, text }: Exchange, answer: JsonRecord, checked: CheckedDocument): string[] {
  const [type = ''] = (headers['content-type'] ?? '').split(';');
  if (text === '' && answer['content'] === undefined) return [];
  if (/^text\/(html|plain|javascript)$/.test(type))
    return validateContent('answer', answer, type, [], checked);
  if (type !== 'text/event-stream')
    return validateContent('answer', answer, type, [JSON.parse(text)], checked);
  const events = text
    .split('\n')
    .filter((line) => line.startsWith('data: ') && line !== 'data: [DONE]')
    .map((line) => JSON.parse(line.slice('data: '.length)) as unknown);
  return validateContent('event', answer, type, events, checked);
}

function validateContent(
  what: string,
  { content }: JsonRecord,
  type: string,
  values: readonly unknown[],
  { schemas }: CheckedDocument,
): string[] {
  const media = asRecord(content)[type];
  if (!isRecord(media)) return [`${what} of type ${type} is not documented`];
  const { schema } = media;
  if (!isRecord(schema)) return [];
  return values.flatMap((value) => {
    // Copied, because the validator marks the schemas that it resolves.
    const { errors } = validate(value, prepareSchema(schema), '2020-12', schemas, true);
    return describeErrors(errors).map(
      (words) => `${what}: ${words} in ${JSON.stringify(value).slice(0, 300)}`,
    );
  });
}

/** Resolves the references of a schema that stands in no component. */
function prepareSchema(schema: JsonRecord): Schema {
  const copy = structuredClone(schema);
  dereference(copy, Object.create(null) as Record<string, Schema>, new URL(base));
  return copy;
}

/** The deepest errors: those above only repeat that something below is wrong. */
const describeErrors = (errors: readonly OutputUnit[]): string[] =>
  errors.slice(-3).map(({ instanceLocation, keyword, error }) => `${instanceLocation} ${keyword}: ${error}`);
