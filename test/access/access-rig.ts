/**
 * The tables and secret stores of a deployed relay on this machine, each behind a double that enforces the policy of
 * the signing access key. The SDK and the tool are the product's own.
 */
import { vi } from 'vitest';
import { startFaultProxy } from '../support/fault-proxy.ts';
import type { PolicyName } from '../../infra/access/policies.ts';
import { accountAnswer } from '../ops/account-replies.ts';
import { startAws, type AwsOnLoopback } from '../ops/aws-on-loopback.ts';
import { ConfigRig } from '../ops/config-rig.ts';
import { LedgerRig } from '../ops/ledger-rig.ts';
import { runOps, type OpsRun } from '../ops/run-ops.ts';
import { RecoverableTables } from '../infra/loopback/recoverable-tables.ts';
import { emulatorClient, startEmulator } from '../support/emulator.ts';
import { startScriptedUpstream, type ScriptedUpstream } from '../support/scripted-upstream.ts';
import { Enforcer } from './enforcer.ts';
import { region as home, type ManagedPolicy } from './template-policies.ts';

export interface AccessRig {
  enforcer: Enforcer;
  /** Both write to the tables themselves, as the relay's functions and tests do. */
  ledger: LedgerRig;
  config: ConfigRig;
  aws: AwsOnLoopback;
  upstream: ScriptedUpstream;
  recovery: RecoverableTables;
  /** Runs a command with credentials that have this one policy and no other. */
  ops(policy: PolicyName | 'nobody', words: string[], options?: RunOptions): Promise<OpsRun>;
  /** Environment variables that make the SDK and the tool use these credentials. */
  environmentOf(policy: PolicyName | 'nobody'): { account: Record<string, string>; tables: string };
  stop(): Promise<void>;
}

export interface RunOptions {
  /** Default: the region of the policies. */
  region?: string;
  input?: string;
  /** Use local tables, where channels may point to this machine and all share one access key. */
  isLocal?: boolean;
}

const services = ['SSM', 'SECRETS_MANAGER', 'CLOUDFORMATION', 'CLOUDWATCH_LOGS', 'LAMBDA', 'BEDROCK', 'STS'];

export async function startAccessRig(policies: ReadonlyMap<string, ManagedPolicy>): Promise<AccessRig> {
  const [emulator, aws, upstream] = await Promise.all([
    startEmulator(),
    startAws('https://d111.cloudfront.net/v1'),
    startScriptedUpstream(),
  ]);
  const enforcer = new Enforcer(policies);
  const { refuse } = enforcer;
  const client = emulatorClient(emulator.endpoint);
  const recovery = new RecoverableTables(client);
  const tables = await startFaultProxy({
    upstream: emulator.endpoint,
    refuse: (request, body) =>
      refuse(request, body) ??
      limitsOf(aws, request.headers, body) ??
      recovery.answer(String(request.headers['x-amz-target']), body),
  });
  const others = await startFaultProxy({ upstream: aws.endpoint, refuse });
  const [ledger, config] = await Promise.all([LedgerRig.start(emulator), ConfigRig.start(emulator)]);
  const accountOf = (policy: string, region = home): Record<string, string> => ({
    ...Object.fromEntries(services.map((name) => [`AWS_ENDPOINT_URL_${name}`, others.endpoint])),
    AWS_REGION: region,
    AWS_ACCESS_KEY_ID: `AKIA${policy.toUpperCase()}`,
    AWS_SECRET_ACCESS_KEY: 'test',
  });
  return {
    enforcer,
    ledger,
    config,
    aws,
    upstream,
    recovery,
    async ops(policy, words, { input, isLocal = false, region } = {}) {
      enforcer.localPolicy = policy;
      enforcer.denied = [];
      const account = accountOf(policy, region);
      const local = { AWS_ENDPOINT_URL_DYNAMODB: tables.endpoint };
      // The SDK reads these of the process; what the tool is given itself makes a loopback endpoint local.
      for (const [name, value] of Object.entries({ ...account, ...local })) vi.stubEnv(name, value);
      try {
        if (isLocal) return await runOps(words, { ...local, UPSTREAM_KEY: 'sk-upstream' }, input);
        return await runOps([...words, '--stack', 'relay'], account, input);
      } finally {
        vi.unstubAllEnvs();
      }
    },
    environmentOf(policy) {
      enforcer.localPolicy = policy;
      return { account: accountOf(policy), tables: tables.endpoint };
    },
    async stop() {
      client.destroy();
      await Promise.all([tables.close(), others.close(), aws.close(), upstream.close()]);
      await ledger.stop();
      await config.stop();
    },
  };
}

/** The emulator of tables knows no limits. */
function limitsOf({ account }: AwsOnLoopback, headers: Record<string, unknown>, body: Buffer) {
  const target = String(headers['x-amz-target']);
  if (!target.endsWith('.DescribeLimits')) return undefined;
  const asked = { method: 'POST', path: '/', target, authorization: String(headers['authorization']) };
  const [status, text] = accountAnswer(account, { ...asked, body: body.toString() }) ?? [500, ''];
  return { status, headers: { 'content-type': 'application/x-amz-json-1.0' }, body: text };
}
