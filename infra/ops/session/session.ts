/** Opens the operators' ports for the tables of a target. Every face uses it; it prints nothing. */
import { createConsoleStore } from '../../../shared/adapters/dynamodb/console-store.ts';
import { createConfigVersions } from '../../../shared/adapters/dynamodb/config-store.ts';
import { createLedgerReader } from '../../../shared/adapters/dynamodb/ledger-reader.ts';
import { createResponseRows } from '../../../shared/adapters/dynamodb/responses/response-rows.ts';
import { createPaymentStore } from '../../../shared/adapters/dynamodb/payment-store.ts';
import { createRowPages } from '../../../shared/adapters/dynamodb/row-pages.ts';
import { createRowTables } from '../../../shared/adapters/dynamodb/row-tables.ts';
import { createTableCopies } from '../../../shared/adapters/dynamodb/table-copies.ts';
import {
  explainErrors,
  findLocalStack,
  readTableLimits,
  createRowAuthor,
  type Store,
} from '../../../shared/adapters/dynamodb/operator-store.ts';
import { openStore } from '../../../shared/adapters/dynamodb/open-store.ts';
import { createSecretWriter } from '../../../shared/adapters/secrets/secret-writer.ts';
import {
  nodeHmac,
  generateSecretKey,
  generateHex,
  systemClock,
} from '../../../shared/adapters/system/node-ports.ts';
import { createHttpsTransport } from '../../../shared/adapters/transport/https-transport.ts';
import { cloneFolder, findRunningTables } from './running-stack.ts';
import { Failure, usageFailure } from '../../../shared/operate/plan.ts';
import type { OperatorPorts, Target } from '../../../shared/operate/operator-ports.ts';
import type { AwsOverrides } from '../../../shared/adapters/system/environment.ts';
import { StoreUnavailable } from '../../../shared/relay/ports/store-errors.ts';

interface OpenedSession {
  ports: OperatorPorts;
  /** The same, writing for somebody whom these credentials do not say. */
  portsOf: (name: string) => OperatorPorts;
  /** Without a region, every read fails. */
  region: string | undefined;
}

/** @param explainDenied a Failure for an error that means that the credentials do not allow it, else undefined */
export async function openSession(
  { region, profile, clone, ...target }: SessionTarget,
  environment: NodeJS.ProcessEnv,
  explainDenied: (error: unknown, region: string | undefined) => Failure | undefined = () => undefined,
): Promise<OpenedSession> {
  const explain = (error: unknown, where?: string): Failure =>
    explainDenied(error, store.region) ?? explainStoreError(error, target, where);
  const overrides = { ...(region !== undefined && { region }), ...(profile !== undefined && { profile }) };
  const opened = await openStore(target, overrides);
  const store = clone === undefined ? opened : guardClone(opened, clone);
  const explainPortErrors = <Port extends object>(port: Port): Port => explainErrors(port, explain);
  const caller = { stack: target.stack, environment, aws: store.aws };
  const { accessKey } = explainPortErrors({
    accessKey: async () => (await store.aws()).credentials.accessKeyId,
  });
  const operator = loadOnce(async () => {
    if (target.local) return 'local';
    const { identifyCaller } = await import('../../../shared/adapters/aws/caller-identity.ts');
    return identifyCaller(caller, accessKey);
  });
  /** Ports that record who wrote a row. */
  const createSignedPorts = (who: OperatorPorts['operator']) => ({
    operator: who,
    tables: explainPortErrors(createRowTables(store, createRowAuthor(who))),
    payments: explainPortErrors(createPaymentStore(store.tables, target.stack, createRowAuthor(who))),
  });
  const local = explainPortErrors({ stack: () => findLocalStack(store) });
  const locateLog = async () => {
    if (target.local) return (await local.stack()).log;
    const { findLogGroups } = await loadStack();
    return findLogGroups(caller).catch((error: unknown) => {
      throw explain(error, 'CloudFormation');
    });
  };
  const loadLog = loadOnce(async () => {
    const { createInsightsCallLog } = await import('../../../shared/adapters/aws/insights-call-log.ts');
    return createInsightsCallLog({ ...caller, explain, place: locateLog });
  });
  const limits = explainPortErrors({ tableLimits: () => readTableLimits(store) });
  const ports: OperatorPorts = {
    target,
    clock: systemClock,
    random: { secretKey: generateSecretKey, hex: generateHex },
    hmac: nodeHmac,
    ...createSignedPorts(operator),
    pages: explainPortErrors(createRowPages(store)),
    ledger: explainPortErrors(createLedgerReader(store)),
    copies: explainPortErrors(createTableCopies(store)),
    traffic: store.traffic,
    responses: explainPortErrors(createResponseRows(store, systemClock)),
    consoles: explainPortErrors(
      createConsoleStore({ ...store, stack: target.stack, clock: systemClock, hex: generateHex }),
    ),
    config: explainPortErrors(createConfigVersions(store)),
    secrets: createSecretWriter({ ...caller, target, explain }),
    upstreams: createHttpsTransport(target),
    baseUrl: async () =>
      target.local ? (await local.stack()).baseUrl : (await loadStack()).findBaseUrl(caller),
    log: {
      source: async () => (await loadLog()).source(),
      search: async (search) => (await loadLog()).search(search),
      counts: async (search, by) => (await loadLog()).counts(search, by),
    },
    account: async () =>
      (await import('../../../shared/adapters/aws/aws-account.ts')).createAwsAccount({
        ...caller,
        explain,
        ...limits,
      }),
  };
  const portsOf = (name: string): OperatorPorts => ({ ...ports, ...createSignedPorts(async () => name) });
  return { ports, portsOf, region: store.region };
}

// An AWS client takes 8 to 40 ms to load, and most commands need none.

const loadStack = () => import('../../../shared/adapters/aws/deployed-stack.ts');

function loadOnce<Value>(load: () => Promise<Value>): () => Promise<Value> {
  let loading: Promise<Value> | undefined;
  return () => (loading ??= load());
}

/**
 * Refuses another clone's stack, or tables of another program, before the first read: a wrong guess would write into somebody
 * else's books. A command that reads no table needs no stack.
 */
function guardClone(store: Store, clone: string): Store {
  const check = loadOnce(async () => {
    const { clone: found } = await findLocalStack(store);
    if (found === clone) return;
    const owner = found === undefined ? 'do not belong to a running `npm start`' : `belong to ${found}`;
    throw usageFailure(
      `the tables at ${store.target.endpoint} ${owner}, not to this clone (${clone}): run \`npm start\` here, or set AWS_ENDPOINT_URL_DYNAMODB`,
    );
  });
  const tables: Store['tables'] = {
    async call(...input) {
      await check();
      return store.tables.call(...input);
    },
  };
  return { ...store, tables };
}

// Decides which tables a run works on, before anything is opened. Every run prints the target first.

const defaultStack = 'relay';
const stackName = /^[A-Za-z][A-Za-z0-9-]{0,127}$/;

export interface TargetOptions extends AwsOverrides {
  stack?: string;
  /** The stack `relay-<stage>`. */
  stage?: string;
}

interface SessionTarget extends Target, AwsOverrides {
  /** The clone whose running stack is used, because no option names the tables. */
  clone?: string;
}

/**
 * Chooses the tables: an endpoint in the environment, else a deployed stack, else the stack that `npm start` of this clone runs. Only these options
 * select a real AWS account; it is never guessed.
 */
export function resolveTarget(options: TargetOptions, environment: NodeJS.ProcessEnv): SessionTarget {
  const { stage, region, profile } = options;
  if (stage !== undefined && options.stack !== undefined)
    throw usageFailure('use either --stage or --stack: --stage NAME means the stack relay-NAME');
  const stack = stage === undefined ? options.stack : `${defaultStack}-${stage}`;
  const overrides = { ...(region !== undefined && { region }), ...(profile !== undefined && { profile }) };
  if (stack !== undefined && !stackName.test(stack)) {
    throw usageFailure(`invalid stack name ${stack}: use letters, digits and -, for example relay-test`);
  }
  const named = environment['AWS_ENDPOINT_URL_DYNAMODB'];
  if (named) return { stack: stack ?? defaultStack, endpoint: named, local: isLoopback(named) };
  if (stack !== undefined || region !== undefined || profile !== undefined)
    return { stack: stack ?? defaultStack, local: false, ...overrides };
  return { stack: defaultStack, endpoint: findRunningTables(environment), local: true, clone: cloneFolder() };
}

function isLoopback(endpoint: string): boolean {
  const url = URL.parse(endpoint);
  if (url === null) throw usageFailure('AWS_ENDPOINT_URL_DYNAMODB is not a valid URL');
  // A local stack's emulator has an address of its own in 127.0.0.0/8. The URL has it in its usual form.
  return /^(?:localhost|\[::1\]|127(?:\.\d{1,3}){3})$/.test(url.hostname);
}

/** The first line that every run prints. */
export function describeTarget(
  target: SessionTarget,
  region: string | undefined,
  environment: NodeJS.ProcessEnv,
): string {
  if (target.endpoint !== undefined) {
    const kind = target.local ? 'local tables' : 'tables';
    return `${kind} at ${target.endpoint} (${target.stack}-*)`;
  }
  const profile = target.profile ?? environment['AWS_PROFILE'];
  return `stack ${target.stack} in ${region ?? 'no region'} (${profile ? `profile ${profile}` : 'default AWS credentials'})`;
}

// Explains AWS errors to operators: what is wrong and what to do.

type Advice = (of: { name: string; code: string; where: string; target: Target }) => string;

/** By the error's name, its code, or its message; the first that fits. */
const advices: readonly (readonly [errors: RegExp, Advice])[] = [
  [
    /^ECONNRESET$/,
    ({ where }) =>
      `${where} closed the connection before it answered, so the change may or may not be saved: check, then re-run the command if needed`,
  ],
  [
    /^(Throttling|ThrottlingException|ProvisionedThroughputExceededException|RequestLimitExceeded)$/,
    ({ name, where }) => `${where} is throttling requests (${name}): re-run the command in a minute`,
  ],
  [
    /^(ECONNREFUSED|ENOTFOUND|EHOSTUNREACH|ETIMEDOUT|TimeoutError)$/,
    ({ code, where, target }) =>
      target.local
        ? `no local stack is running at ${where}: run \`npm start\` first, or use --stack for a deployed one`
        : `${where} does not respond (${code || 'timeout'}): check the network and the region`,
  ],
  [
    /^ResourceNotFoundException$/,
    ({ where, target: { local, stack } }) =>
      local
        ? `${where} has no tables named ${stack}-*: \`npm start\` creates those of the stack relay`
        : `no stack ${stack} in this account and region: check --stack, AWS_PROFILE and AWS_REGION`,
  ],
  [
    /^((Credentials|Token)ProviderError|(ExpiredToken|UnrecognizedClient|InvalidSignature)Exception)$/,
    () => 'no valid AWS credentials: set AWS_PROFILE, or run `aws sso login`',
  ],
  [/^Region is missing$/, () => 'no AWS region: set AWS_REGION, or AWS_PROFILE to a profile that has one'],
];

/**
 * Converts an error of a store to a Failure that states what is wrong and what to do.
 * @param where name of the store or endpoint that failed
 */
export function explainStoreError(
  error: unknown,
  target: Target,
  where = target.endpoint ?? 'DynamoDB',
): Failure {
  if (error instanceof StoreUnavailable && error.cause !== undefined)
    return explainStoreError(error.cause, target, where);
  if (!(error instanceof Error)) return new Failure(`cannot reach ${where}`);
  const { name, message } = error;
  const code = 'code' in error ? String(error.code) : '';
  const [, advice] =
    advices.find(([errors]) => [code, name, message].some((each) => errors.test(each))) ?? [];
  return new Failure(advice?.({ name, code, where, target }) ?? `${where}: ${name}: ${message}`);
}
