/**
 * The operators' console as a function behind the distribution, for deployments that ask for it. Who logs in, and with which role,
 * it checks itself; its rights are what its pages do, and no more.
 */
import { join } from 'node:path';
import { Stack } from 'aws-cdk-lib';
import { RetentionDays, type ILogGroup } from 'aws-cdk-lib/aws-logs';
import type { Construct } from 'constructs';
import { consoleAccess } from '../../access/policies.ts';
import { callsBedrock, statementsOf } from './operator-policies.ts';
import {
  buildDeployedVariables,
  RelayFunction,
  type RelayCodeProps,
  type RelayFunctionsProps,
} from './relay-functions.ts';

/** A console in the browser for people who log in at an OpenID Connect issuer: docs/console.md. */
export interface RelayConsole {
  oidc: {
    /** As it writes itself in its tokens: `https://accounts.google.com`. */
    issuer: string;
    clientId: string;
    /** Reference of the client's secret: `ssm:/relay/<stack>/console/<name>` or `secretsmanager:<stack>/console/<name>`. */
    clientSecret: string;
    /** Default: `openid`, `email` and `profile`. */
    scopes?: readonly string[] | undefined;
    /** The claim of the ID token that has the groups. Default: `groups`. */
    groupsClaim?: string | undefined;
  };
  /** Groups and verified e-mail addresses by role. A viewer reads, support refunds up to a limit, an operator does everything. */
  roles: {
    viewer?: readonly string[] | undefined;
    support?: readonly string[] | undefined;
    operator?: readonly string[] | undefined;
  };
  /** Yuan that each person with the role support may refund in a UTC day. Default: 0. */
  supportRefundYuanADay?: number | undefined;
}

interface HostedConsoleProps
  extends RelayConsole, RelayCodeProps, Pick<RelayFunctionsProps, 'logRetention' | 'publicHost'> {
  acceptedOriginSecrets: string;
  bedrockModels: readonly string[];
  callLogs: readonly ILogGroup[];
}

export function createHostedConsole(scope: Construct, props: HostedConsoleProps): RelayFunction {
  const { relayName, version, oidc, roles, supportRefundYuanADay, publicHost } = props;
  const made = new RelayFunction(scope, 'Console', {
    ...props,
    description: {
      purpose: 'The console of operators, for people who log in',
      url: 'RESPONSE_STREAM',
      // A page is watched for five minutes by one request.
      timeoutSeconds: 360,
      tables: {},
      // The client's secret, and those that channels are tried with.
      readsSecrets: ['channels', 'console'],
    },
    bundleFolder: join(props.bundlesFolder, 'console'),
    environment: {
      RELAY_STACK: relayName,
      RELAY_VERSION: version,
      ORIGIN_SECRETS: props.acceptedOriginSecrets,
      CONSOLE: JSON.stringify({ oidc, roles, supportRefundYuanADay }),
      ...buildDeployedVariables(props.secretAccess),
      ...(publicHost !== undefined && { RELAY_PUBLIC_HOST: publicHost }),
    },
    memoryMegabytes: 512,
    logRetention: props.logRetention ?? RetentionDays.ONE_MONTH,
    reservedConcurrency: undefined,
    functionUrls: true,
  });
  for (const statement of [
    ...statementsOf(Stack.of(scope), props, consoleAccess),
    ...callsBedrock(props.bedrockModels),
  ])
    made.lambda.addToRolePolicy(statement);
  return made;
}
