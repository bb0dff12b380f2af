/**
 * Credentials from wherever the SDK finds them: variables, a web identity, a container's endpoint, an instance's role, files.
 * They are renewed before they expire. Only the server's bundle holds this chain; Lambda gives credentials as variables.
 */
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { CredentialProvider } from '../../shared/adapters/system/environment.ts';

export function defaultCredentials(): CredentialProvider {
  const { config } = new DynamoDBClient({});
  return (options) => config.credentials(options);
}
