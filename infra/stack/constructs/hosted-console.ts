/**
 * The operators' console as a function behind the distribution, created on request. It checks logins and roles itself, and has only
 * the rights that its pages need.
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
    /** The issuer as in its tokens: `https://accounts.google.com`. */
    issuer: string;
    clientId: string;
    /** Reference of the client's secret: `ssm:/relay/<stack>/console/<name>` or `secretsmanager:<stack>/console/<name>`. */
    clientSecret: string;
    /** By default `openid`, `email` and `profile`. */
    scopes?: readonly string[] | undefined;
    /** The claim of the ID token that lists the groups. Default: `groups`. */
    groupsClaim?: string | undefined;
  };
  /** Groups and verified e-mail addresses by role. A viewer can read, support can refund up to a limit, an operator can do everything. */
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
      // One request watches a page for five minutes.
      timeoutSeconds: 360,
      tables: {},
      // The OpenID client's secret, and secrets of channels for their tests.
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
