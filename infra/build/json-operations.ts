/**
 * The operations that functions call, and the little of their schemas that JSON does not say by itself.
 * test/bench/bundled-sdk-calls.test.ts compares the list with the SDK's schemas.
 */
export interface JsonOperation {
  /** A member of the input that gets a new id when the caller gives none. */
  token?: string;
  /** Members of replies that are times, or bytes of other than an item: no function reads them, so they are left out. */
  unread?: string[];
}

/** Client, operation. The SDK's client of a service has nothing else in a bundle. */
export const jsonOperations: Record<string, Record<string, JsonOperation>> = {
  'client-dynamodb': {
    BatchGetItem: {},
    GetItem: {},
    PutItem: {},
    Query: {},
    Scan: {},
    TransactWriteItems: { token: 'ClientRequestToken' },
    UpdateItem: {},
  },
  'client-ssm': { GetParameter: { unread: ['LastModifiedDate'] } },
  'client-secrets-manager': { GetSecretValue: { unread: ['CreatedDate', 'SecretBinary'] } },
};
