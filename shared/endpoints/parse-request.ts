/** Checks a body against the schema of its endpoint and explains the first mistake in OpenAI's words. Never quotes a long value. */
import type * as z from 'zod/mini';
import { logprobTokensMax, type ChatRequest } from '../wire/canonical-call.ts';
import { InvalidRequest } from '../wire/invalid-request.ts';
import { isRecord, valueAt, type JsonRecord } from '../wire/json.ts';

type Issue = z.core.$ZodIssue;

/**
 * Checks a body against its schema and returns it with its unknown fields, but without the empty ones. Throws an InvalidRequest
 * that names the first wrong field, the value found and the values accepted.
 */
export function parseRequest<T>(schema: z.ZodMiniType<T>, sent: unknown): T {
  if (!isRecord(sent)) throw new InvalidRequest('invalid_type', null, 'The body must be a JSON object.');
  checkMembers(schema, sent);
  const body = removeEmptyFields(sent);
  const result = schema.safeParse(body);
  if (result.success) return body as T;
  const { issue, path } = findDeepestIssue(result.error.issues[0], []);
  const param = formatPath(path);
  const found = valueAt(body, path);
  if (found === undefined || (found === null && path.length === 1))
    throw new InvalidRequest('missing_required_parameter', param, `Missing required parameter: '${param}'.`);
  const wanted = describeWanted(issue);
  if (issue?.code === 'too_big' && typeof found === 'string')
    throw new InvalidRequest(
      'string_above_max_length',
      param,
      `'${param}' has ${found.length} characters; at most ${issue.maximum} are accepted.`,
    );
  throw new InvalidRequest(
    issue?.code === 'invalid_type' || issue?.code === 'custom' ? 'invalid_type' : 'invalid_value',
    param,
    `Invalid value for '${param}': found ${describeFound(found)}, expected ${wanted}.`,
  );
}

/** An empty text in these fields is kept and reported. An empty id, for example, must not silently start a new conversation. */
const reportedFields = new Set(['model', 'messages', 'input', 'reasoning_effort', 'previous_response_id']);
/** A list without stop sequences has no effect, but some vendors refuse it [langchain-ai/langchain 38047]. */
const stopFields = new Set(['stop', 'stop_sequences']);

const isEmptyField = ([field, value]: [string, unknown]): boolean =>
  (value === '' && !reportedFields.has(field)) ||
  (stopFields.has(field) && Array.isArray(value) && value.every((each) => each === ''));

/** Some clients send empty texts for options that nobody set. Vendors refuse them, or take them for a value. */
function removeEmptyFields(body: JsonRecord): JsonRecord {
  const entries = Object.entries(body);
  return entries.some(isEmptyField)
    ? Object.fromEntries(entries.filter((entry) => !isEmptyField(entry)))
    : body;
}

/** Members of one object. 96,000 took most of a second, in which a server answers nobody else. */
const unknownMembersMax = 500;
/** JSON schemas and the like, which name what is the caller's: nothing asks about each of their members. */
const callersOwn: ReadonlySet<string> = new Set(['parameters', 'schema', 'input_schema', 'logit_bias']);

/** Refuses an object with too many unknown members before anything asks about each of them. */
function checkMembers(schema: z.core.$ZodType, body: JsonRecord): void {
  const path = findWideObject(body, (names) => {
    if (names.length <= unknownMembersMax) return false;
    const known = namesIn(schema);
    return names.filter((name) => !known.has(name)).length > unknownMembersMax;
  });
  if (!path) return;
  const param = formatPath(path) || null;
  throw new InvalidRequest(
    'json_too_wide',
    param,
    `${param === null ? 'The body' : `'${param}'`} has more than ${unknownMembersMax} unknown fields.`,
  );
}

/** Returns the path of the first object that is too wide. */
function findWideObject(value: unknown, isWide: (names: string[]) => boolean): PropertyKey[] | undefined {
  if (Array.isArray(value)) {
    for (const [i, each] of value.entries()) {
      const path = typeof each === 'object' ? findWideObject(each, isWide) : undefined;
      if (path) return [i, ...path];
    }
    return undefined;
  }
  if (!isRecord(value)) return undefined;
  const names = Object.keys(value);
  if (isWide(names)) return [];
  for (const name of names) {
    const path = callersOwn.has(name) ? undefined : findWideObject(value[name], isWide);
    if (path) return [name, ...path];
  }
  return undefined;
}

/** The names of members that a schema has anywhere. */
function namesIn(schema: z.core.$ZodType): ReadonlySet<string> {
  const {
    shape = {},
    innerType,
    element,
    options = [],
  } = schema._zod.def as {
    shape?: Record<string, z.core.$ZodType>;
    innerType?: z.core.$ZodType;
    element?: z.core.$ZodType;
    options?: z.core.$ZodType[];
  };
  const below = [...Object.values(shape), ...options, innerType, element].filter(
    (each) => each !== undefined,
  );
  return new Set([...Object.keys(shape), ...below.flatMap((each) => Array.from(namesIn(each)))]);
}

/** The issue to report. In a union, the branch that matched furthest is taken as the intended one. */
function findDeepestIssue(
  issue: Issue | undefined,
  base: PropertyKey[],
): { issue: Issue | undefined; path: PropertyKey[] } {
  const path = [...base, ...(issue?.path ?? [])];
  if (issue?.code !== 'invalid_union') return { issue, path };
  const branches = issue.errors.map((errors) => findDeepestIssue(errors[0], path));
  const furthest = branches.toSorted((a, b) => b.path.length - a.path.length)[0];
  return furthest && furthest.path.length > path.length ? furthest : { issue, path };
}

function formatPath(path: PropertyKey[]): string {
  return path
    .map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`))
    .join('')
    .replace(/^\./, '');
}

function describeWanted(issue: Issue | undefined): string {
  if (issue?.code === 'invalid_type')
    return issue.expected === 'int' ? 'a whole number' : article(issue.expected);
  if (issue?.code === 'invalid_value')
    return `one of ${issue.values.map((value) => `'${String(value)}'`).join(', ')}`;
  if (issue?.code === 'too_big') return `a value of at most ${issue.maximum}`;
  if (issue?.code === 'custom') return 'an object';
  if (issue?.code === 'invalid_union' && issue.errors.length > 0)
    return [...new Set(issue.errors.map(([first]) => describeWanted(first)))].join(' or ');
  if (issue?.code !== 'too_small') return 'a different type';
  const sized = issue.origin === 'string' || issue.origin === 'array';
  return sized ? `${article(issue.origin)} that is not empty` : `a value of at least ${issue.minimum}`;
}

const article = (type: string): string => (/^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`);

function describeFound(value: unknown): string {
  if (typeof value === 'string') return value.length <= 40 ? JSON.stringify(value) : 'a long string';
  if (Array.isArray(value)) return value.length === 0 ? 'an empty array' : 'an array';
  return typeof value === 'object' && value !== null ? 'an object' : String(value);
}

/** Fewer tokens than any answer is cut to without having been asked for. */
const leastTokens = 1024;

/**
 * Refuses a call whose log probabilities the relay could not hold. A client that set no limit gets a lower one, down to
 * a thousand tokens. `asked`: the limits on output tokens that the client sent.
 */
export function checkLogprobs(request: ChatRequest, asked: readonly (number | null | undefined)[]): void {
  const most = logprobTokensMax(request);
  const limit = Math.max(...asked.map((each) => each ?? 0));
  if (most === undefined || (limit === 0 ? leastTokens : limit) <= most) return;
  const { top_logprobs: top, n, stream } = request;
  const choices = (n ?? 1) > 1 ? ` in each of ${n} choices` : '';
  const fewer = `Lower top_logprobs, the number of choices or the limit on output tokens`;
  throw new InvalidRequest(
    'logprobs_too_many',
    top ? 'top_logprobs' : 'logprobs',
    `With ${top ?? 0} top_logprobs${choices} at most ${most} output tokens fit${stream === true ? '' : ' into an answer that is not streamed'}; ${limit === 0 ? `at least ${leastTokens}` : limit} are asked for. ${fewer}${stream === true ? '' : ', or stream on Chat Completions'}.`,
  );
}
