/** Opens a secret in SSM or Secrets Manager for an operator's tool. */
import {
  CreateSecretCommand,
  DeleteSecretCommand,
  GetSecretValueCommand,
  PutSecretValueCommand,
  SecretsManagerClient,
} from '@aws-sdk/client-secrets-manager';
import {
  DeleteParameterCommand,
  GetParameterCommand,
  PutParameterCommand,
  SSMClient,
} from '@aws-sdk/client-ssm';
import { composeClientSettings, type AwsCaller } from '../aws/client-settings.ts';

export interface StoredSecret {
  title: string;
  name: string;
  put(value: string, replace: boolean): Promise<void>;
  get(): Promise<string | undefined>;
  remove(): Promise<unknown>;
}

export function openSecret(reference: string, caller: AwsCaller): StoredSecret {
  const name = reference.slice(reference.indexOf(':') + 1);
  return reference.startsWith('ssm:') ? openParameter(name, caller) : openManagedSecret(name, caller);
}

function openParameter(Name: string, caller: AwsCaller): StoredSecret {
  const client = new SSMClient(composeClientSettings(caller, 'SSM'));
  return {
    title: 'SSM',
    name: Name,
    async put(Value, Overwrite) {
      await client.send(new PutParameterCommand({ Name, Value, Type: 'SecureString', Overwrite }));
    },
    get: async () =>
      (await client.send(new GetParameterCommand({ Name, WithDecryption: true }))).Parameter?.Value,
    remove: () => client.send(new DeleteParameterCommand({ Name })),
  };
}

function openManagedSecret(name: string, caller: AwsCaller): StoredSecret {
  const client = new SecretsManagerClient(composeClientSettings(caller, 'SECRETS_MANAGER'));
  return {
    title: 'Secrets Manager',
    name,
    async put(SecretString, replace) {
      try {
        await client.send(new CreateSecretCommand({ Name: name, SecretString }));
      } catch (error) {
        if (!replace || !(error instanceof Error) || error.name !== 'ResourceExistsException') throw error;
        await client.send(new PutSecretValueCommand({ SecretId: name, SecretString }));
      }
    },
    get: async () => (await client.send(new GetSecretValueCommand({ SecretId: name }))).SecretString,
    // AWS keeps it restorable for 30 days.
    remove: () => client.send(new DeleteSecretCommand({ SecretId: name })),
  };
}
