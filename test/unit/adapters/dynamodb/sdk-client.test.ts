import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { describe, expect, test } from 'vitest';
import {
  openStore,
  attributesOn,
  backgroundClient,
  documentClient,
  documentsOn,
} from '../../../../shared/adapters/dynamodb/operator-store.ts';

const aws = { region: 'us-east-1', credentials: { accessKeyId: 'local', secretAccessKey: 'local' } };
const target = { stack: 'relay', endpoint: 'http://127.0.0.1:1', local: true };
const store = await openStore(target, (error) => error as Error);

const linesOf = ({ middlewareStack }: Pick<DynamoDBClient, 'middlewareStack'>): string[] =>
  middlewareStack.identify().filter((each) => /logger/i.test(each));

describe('what is read', () => {
  test('is made a line of by a client of the SDK as it is', () => {
    expect(linesOf(new DynamoDBClient(aws))).toHaveLength(1);
  });

  test.each([
    ['of background jobs', backgroundClient(aws)],
    ['for documents', documentClient(aws)],
    ['for documents on another', documentsOn(backgroundClient(aws))],
    ['for attributes on another', attributesOn(documentClient(aws), 1)],
    ['of operators', store.client],
    ['of operators for documents', store.documents],
  ])('is not by the client %s', (_words, client) => {
    expect(linesOf(client as Pick<DynamoDBClient, 'middlewareStack'>)).toEqual([]);
  });
});
