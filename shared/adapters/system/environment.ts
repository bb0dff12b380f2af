/**
 * Reads and checks the environment variables of a deployed function once, at start. docs/architecture.md
 * lists them.
 */
import { secretPurposes, usualVariable, type SecretPurpose } from '../../config/rows/secret-reference.ts';
import { asRecord, parseJson, decodePercent } from '../../wire/json.ts';

export interface Environment {
  /** The stack's name. Table names and secrets' paths contain it. */
  stack: string;
  /** The version that `/health` reports. */
  version: string;
  /** The number of the function's version that runs, as Lambda tells it; `$LATEST` where it is called without one. */
  functionVersion?: string;
  /** Accepted values of `x-relay-origin`; an empty list refuses every request. */
  originSecrets: string[];
  /** On the local stack only: loopback http endpoints and `env:` secrets are allowed. */
  local: boolean;
  /** Which variables `env:` secrets may read, as `mayReadVariable` takes them. */
  envSecrets?: readonly string[];
  /** How many calls at once the deployment reserved for each function that answers calls. Undefined: it reserved none. */
  concurrencyGiven?: number | undefined;
  /** The function that answers background responses. Undefined: it is that one, or there is none. */
  backgroundFunction?: string | undefined;
  /** What names of end users and caches are hashed with before vendors get them. Undefined: the host gives none. */
  pseudonymKey?: string | undefined;
  /** The public host, if the deployment knows it: one with a domain of its own. */
  publicHost?: string | undefined;
  tracing?: TracingSettings | undefined;
  /** Whose client of the tables is used. Undefined: the relay's own. */
  awsClient?: 'sdk' | undefined;
  aws: AwsAccess;
}

export interface AwsCredentials {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string;
  expiration?: Date;
}

/** Of a process that outlives its credentials. */
export interface CredentialSource {
  /** Those to sign with. Throws when none are valid and none come within the time. */
  current(waitMsMax: number): AwsCredentials | Promise<AwsCredentials>;
  /** For credentials that a service refused. Returns whether others may be had. */
  drop(refused: AwsCredentials): boolean;
}

/** Lambda sets region and credentials as variables, so no credential provider chain is needed. */
export interface AwsAccess {
  region: string;
  credentials: AwsCredentials | CredentialSource;
  /** Connections that one client opens at once. Absent: the SDK's 50, plenty where one call at a time is served. */
  connectionsMax?: number | undefined;
}

/** What a host knows of AWS without the variables that Lambda sets. */
type HostAccess = Pick<AwsAccess, 'connectionsMax'> & { credentials: CredentialSource };

type Variables = Record<string, string | undefined>;

/**
 * Throws an Error that names the first missing variable.
 * @param access of a host that gets its credentials elsewhere
 */
export function readEnvironment(variables: Variables = process.env, access?: HostAccess): Environment {
  const originSecrets = variables['ORIGIN_SECRETS'];
  if (originSecrets === undefined) throw createMissingError('ORIGIN_SECRETS');
  return {
    stack: requireVariable(variables, 'RELAY_STACK'),
    version: requireVariable(variables, 'RELAY_VERSION'),
    functionVersion: variables['AWS_LAMBDA_FUNCTION_VERSION'] ?? '$LATEST',
    originSecrets: originSecrets.split(',').flatMap((secret) => secret.trim() || []),
    local: variables['RELAY_LOCAL'] === '1',
    envSecrets: readEnvSecrets(variables),
    concurrencyGiven: Number(variables['RELAY_CONCURRENCY']) || undefined,
    backgroundFunction: variables['BACKGROUND_FUNCTION'] || undefined,
    pseudonymKey: variables['PSEUDONYM_KEY'] || undefined,
    publicHost: variables['RELAY_PUBLIC_HOST'] || undefined,
    tracing: readTracing(variables),
    awsClient: variables['AWS_CLIENT'] === 'sdk' ? 'sdk' : undefined,
    aws: access ? { region: requireVariable(variables, 'AWS_REGION'), ...access } : readAwsAccess(variables),
  };
}

/** `RELAY_ENV_SECRETS`, separated by commas, and the variable of the channel that `npm start` adds itself. */
export const readEnvSecrets = (variables: Variables): string[] => [
  usualVariable,
  ...(variables['RELAY_ENV_SECRETS'] ?? '').split(',').flatMap((name) => name.trim() || []),
];

/**
 * Seconds that the sweeper waits after a reservation's `until` before it closes the reservation:
 * `RELAY_SWEEP_GRACE`, default 120. The wait covers clock differences and a settle of several seconds.
 */
export function readSweepGraceSeconds(variables: Variables = process.env): number {
  const text = variables['RELAY_SWEEP_GRACE'] ?? '';
  return /^\d{1,6}$/.test(text) ? Number(text) : 120;
}

/** The value of the setting `limits` while it has no row: `RELAY_LIMITS`, JSON. Undefined: the deployment gives none. */
export const readDefaultLimits = (variables: Variables = process.env): unknown =>
  parseJson(variables['RELAY_LIMITS'] ?? '');

/** References in deployment options, which no row may name. `DEPLOYED_SECRETS` maps purpose to reference, as JSON. */
export function readDeployedSecrets(variables: Variables = process.env): Map<string, SecretPurpose> {
  const found = asRecord(parseJson(variables['DEPLOYED_SECRETS'] ?? ''));
  const owners = new Map<string, SecretPurpose>();
  for (const purpose of secretPurposes) {
    const reference = found[purpose];
    if (typeof reference === 'string') owners.set(reference, purpose);
  }
  return owners;
}

/**
 * What the stack offers for alerts: the ARN of a topic, and the verified address of mail to customers. Absent or empty
 * variables: the deployment does not offer it.
 */
export const readAlertAccess = (variables: Variables = process.env) => ({
  topic: variables['ALERT_TOPIC'] || undefined,
  sender: variables['ALERT_SENDER'] || undefined,
});

/** What the scheduled call needs: only the function `canary` has these variables. */
export const readCanary = (variables: Variables = process.env) => ({
  baseUrl: requireVariable(variables, 'CANARY_URL'),
  model: requireVariable(variables, 'CANARY_MODEL'),
  key: requireVariable(variables, 'CANARY_KEY'),
});

/** The option `console` of the deployment: only the function of that name has this variable. */
export const readConsole = (variables: Variables = process.env): unknown =>
  JSON.parse(requireVariable(variables, 'CONSOLE'));

/** Where traces of calls go. */
export interface TracingSettings {
  /** The address that takes OTLP over HTTP as JSON. */
  url: string;
  headers: Record<string, string>;
  /** The name that traces have; undefined: the stack's. */
  service: string | undefined;
  /** The share of calls that are traced, from 0 to 1. */
  ratio: number;
}

/** OpenTelemetry's own variables, which an operator may know. Undefined: nothing is traced. */
export function readTracing(variables: Variables): TracingSettings | undefined {
  const base = variables['OTEL_EXPORTER_OTLP_ENDPOINT']?.replace(/\/+$/, '');
  const url = variables['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'] || (base && `${base}/v1/traces`);
  const sampler = variables['OTEL_TRACES_SAMPLER'] ?? '';
  const isOff = /^true$/i.test(variables['OTEL_SDK_DISABLED'] ?? '') || sampler.endsWith('always_off');
  if (!url || !URL.canParse(url) || isOff) return undefined;
  return {
    url,
    headers: parseHeaders(variables['OTEL_EXPORTER_OTLP_HEADERS'] ?? ''),
    service: variables['OTEL_SERVICE_NAME'] || undefined,
    ratio: sampler.endsWith('always_on') ? 1 : parseRatio(variables['OTEL_TRACES_SAMPLER_ARG'] || '1'),
  };
}

/** What is no share traces all, as OpenTelemetry has it. */
function parseRatio(text: string): number {
  const given = Number(text);
  return given >= 0 && given <= 1 ? given : 1;
}

/** `name=value` pairs, separated by commas, values percent-encoded. Blanks inside a value are taken as they are. */
const parseHeaders = (text: string): Record<string, string> =>
  Object.fromEntries(
    text.split(',').flatMap((pair) => {
      const [, name = '', value = ''] = /^\s*([!#$%&'*+.^`|~\w-]+)\s*=\s*([\x20-\x7e]*)$/.exec(pair) ?? [];
      return name === '' ? [] : [[name, decodePercent(value.trim())]];
    }),
  );

/** A key that seals state for clients. */
export interface StateKey {
  /** Stands in every seal. */
  number: number;
  /** Any text; the key is its SHA-256. */
  secret: string;
}

/**
 * The keys in `SEAL_KEYS`, a JSON object of number to secret text, oldest first. Only functions that answer calls have
 * the variable. Throws an Error that quotes nothing of a key.
 */
export function readStateKeys(variables: Variables = process.env): StateKey[] {
  const text = variables['SEAL_KEYS'];
  // The stack sets it. On a host that does not, state comes back while the environment lives, and is dropped after.
  if (text === undefined) return [{ number: 1, secret: crypto.randomUUID() }];
  const found = parseJson(text);
  const entries = typeof found === 'object' && found !== null ? Object.entries(found) : [];
  const keys = entries.flatMap(([number, secret]) =>
    /^[1-9]\d{0,3}$/.test(number) && typeof secret === 'string' && secret !== ''
      ? [{ number: Number(number), secret }]
      : [],
  );
  if (keys.length === 0 || keys.length < entries.length)
    throw new Error('The environment variable SEAL_KEYS is not a JSON object of numbers to secret texts.');
  return keys.toSorted((a, b) => a.number - b.number);
}

function readAwsAccess(variables: Variables): AwsAccess {
  const sessionToken = variables['AWS_SESSION_TOKEN'];
  return {
    region: requireVariable(variables, 'AWS_REGION'),
    credentials: {
      accessKeyId: requireVariable(variables, 'AWS_ACCESS_KEY_ID'),
      secretAccessKey: requireVariable(variables, 'AWS_SECRET_ACCESS_KEY'),
      ...(sessionToken && { sessionToken }),
    },
  };
}

function requireVariable(variables: Variables, name: string): string {
  const value = variables[name];
  if (!value) throw createMissingError(name);
  return value;
}

const createMissingError = (name: string): Error =>
  new Error(`The environment variable ${name} is missing; the stack sets it on every function.`);

/** What an operator says about the AWS account, in place of the environment; the SDK's own chain finds the rest. */

export interface AwsOverrides {
  region?: string;
  /** A profile of the AWS configuration files. */
  profile?: string;
}
