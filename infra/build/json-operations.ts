/**
 * The operations that functions call. test/bench/bundled-sdk-calls.test.ts compares the list with the SDK's schemas.
 */
import type { JsonOperation } from '../../shared/adapters/dynamodb/plain-json-protocol.ts';

/** Client, operation. The SDK's client of a service has nothing else in a bundle. */
export const jsonOperations: Record<string, Record<string, JsonOperation>> = {
  'client-dynamodb': {
    BatchGetItem: {},
    GetItem: {},
    PutItem: {},
    Query: {},
    Scan: {},
    TransactGetItems: {},
    TransactWriteItems: { token: 'ClientRequestToken' },
    UpdateItem: {},
  },
  'client-ssm': { GetParameter: { unread: ['LastModifiedDate'] } },
  'client-secrets-manager': { GetSecretValue: { unread: ['CreatedDate', 'SecretBinary'] } },
};
