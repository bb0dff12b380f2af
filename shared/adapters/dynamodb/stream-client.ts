import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { AwsAccess } from '../system/environment.ts';

/** The DynamoDB client of a function that no caller waits for: more patient than `documentClient`. */
export const streamClient = (aws: AwsAccess): DynamoDBClient =>
  new DynamoDBClient({
    ...aws,
    maxAttempts: 4,
    requestHandler: { connectionTimeout: 1000, requestTimeout: 3000, throwOnRequestTimeout: true },
  });
