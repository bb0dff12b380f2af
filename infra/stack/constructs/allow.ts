/** Policy statements of roles. Everything that no statement allows is denied. */
import { ArnFormat, type Stack } from 'aws-cdk-lib';
import { PolicyStatement } from 'aws-cdk-lib/aws-iam';

export const allow = (service: string, actions: readonly string[], ...resources: string[]): PolicyStatement =>
  new PolicyStatement({ actions: actions.map((action) => `${service}:${action}`), resources });

/** The secrets of channels in one store. Names are chosen by people, and Secrets Manager adds six characters to each. */
export const channelSecrets = (stack: Stack, relayName: string, store: 'ssm' | 'secretsmanager'): string =>
  store === 'ssm'
    ? stack.formatArn({ service: store, resource: 'parameter', resourceName: `relay/${relayName}/*` })
    : stack.formatArn({
        service: store,
        resource: 'secret',
        resourceName: `${relayName}/*`,
        arnFormat: ArnFormat.COLON_RESOURCE_NAME,
      });
