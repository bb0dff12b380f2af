/** Reads and checks a function's environment variables at start. docs/architecture.md lists them. */
import { secretPurposes, usualVariable, type SecretPurpose } from '../../config/rows/secret-reference.ts';
import { asRecord, parseJson, decodePercent } from '../../wire/json.ts';

export interface Environment {
  /** Part of table names and of secrets' paths. */
  stack: string;
  version: string;
  /** Lambda's number of the running version; `$LATEST` without one. */
  functionVersion?: string;
  /** Accepted values of `x-relay-origin`. An empty list refuses every request. */
  originSecrets: string[];
  /** Local stack: allows loopback http endpoints and `env:` secrets. */
  local: boolean;
  envSecrets?: readonly string[];
  /** Reserved concurrency of functions that answer calls. */
  concurrencyGiven?: number | undefined;
  /** Only on functions that accept background responses. */
  backgroundFunction?: string | undefined;
  /** Key of the hashes that vendors get for end users and caches. */
  pseudonymKey?: string | undefined;
  publicHost?: string | undefined;
  tracing?: TracingSettings | undefined;
  awsClient?: 'sdk' | undefined;
  aws: AwsAccess;
}

export interface AwsCredentials {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string;
  expiration?: Date;
}

/** For a process that outlives its credentials. */
export interface CredentialSource {
  /** Throws if no valid credentials arrive in time. */
  current(waitMsMax: number): AwsCredentials | Promise<AwsCredentials>;
  /** Reports credentials that a service refused. Returns whether others may be available. */
  drop(refused: AwsCredentials): boolean;
}

/** Lambda sets region and credentials as variables, so no provider chain is needed. */
export interface AwsAccess {
  region: string;
  credentials: AwsCredentials | CredentialSource;
  /** Default: the SDK's 50, enough for one call at a time. */
  connectionsMax?: number | undefined;
}

/** Access of a host without Lambda's variables. */
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

/** `RELAY_ENV_SECRETS`, and the variable of the channel that `npm start` adds. */
export const readEnvSecrets = (variables: Variables): string[] => [
  usualVariable,
  ...(variables['RELAY_ENV_SECRETS'] ?? '').split(',').flatMap((name) => name.trim() || []),
];

/** How long the sweeper waits after a reservation's `until`, to cover clock differences and a slow settle. */
export function readSweepGraceSeconds(variables: Variables = process.env): number {
  const text = variables['RELAY_SWEEP_GRACE'] ?? '';
  return /^\d{1,6}$/.test(text) ? Number(text) : 120;
}

/** The setting `limits` while it has no row. */
export const readDefaultLimits = (variables: Variables = process.env): unknown =>
  parseJson(variables['RELAY_LIMITS'] ?? '');

/** References in deployment options, which no row may use. JSON of purpose to reference. */
export function readDeployedSecrets(variables: Variables = process.env): Map<string, SecretPurpose> {
  const references = asRecord(parseJson(variables['DEPLOYED_SECRETS'] ?? ''));
  const owners = new Map<string, SecretPurpose>();
  for (const purpose of secretPurposes) {
    const reference = references[purpose];
    if (typeof reference === 'string') owners.set(reference, purpose);
  }
  return owners;
}

export const readAlertAccess = (variables: Variables = process.env) => ({
  topic: variables['ALERT_TOPIC'] || undefined,
  sender: variables['ALERT_SENDER'] || undefined,
});

export const readCanary = (variables: Variables = process.env) => ({
  baseUrl: requireVariable(variables, 'CANARY_URL'),
  model: requireVariable(variables, 'CANARY_MODEL'),
  key: requireVariable(variables, 'CANARY_KEY'),
});

export const readConsole = (variables: Variables = process.env): unknown =>
  JSON.parse(requireVariable(variables, 'CONSOLE'));

export interface TracingSettings {
  url: string;
  headers: Record<string, string>;
  service: string | undefined;
  /** Share of calls that are traced, from 0 to 1. */
  ratio: number;
}

/** Reads OpenTelemetry's standard variables. */
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

/** An invalid share traces all calls, as in OpenTelemetry. */
function parseRatio(text: string): number {
  const given = Number(text);
  return given >= 0 && given <= 1 ? given : 1;
}

/** `name=value` pairs, separated by commas, values percent-encoded. */
const parseHeaders = (text: string): Record<string, string> =>
  Object.fromEntries(
    text.split(',').flatMap((pair) => {
      const [, name = '', value = ''] = /^\s*([!#$%&'*+.^`|~\w-]+)\s*=\s*([\x20-\x7e]*)$/.exec(pair) ?? [];
      return name === '' ? [] : [[name, decodePercent(value.trim())]];
    }),
  );

/** Encrypts turn state for clients. */
export interface StateKey {
  number: number;
  /** Any text; the key is its SHA-256. */
  secret: string;
}

/** The keys in `SEAL_KEYS`, a JSON object of number to secret, oldest first. Errors never quote a key. */
export function readStateKeys(variables: Variables = process.env): StateKey[] {
  const text = variables['SEAL_KEYS'];
  // A host without the variable can read back its own states only until it restarts.
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

/** An operator's choice of AWS account. The SDK's chain finds the rest. */
export interface AwsOverrides {
  region?: string;
  profile?: string;
}
