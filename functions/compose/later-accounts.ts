/** The reader of the account endpoints, loaded by the first call that needs it: with the SDK, which nothing else here needs. */
import type { AwsAccess } from '../../shared/adapters/system/environment.ts';
import type { AccountReader } from '../../shared/relay/ports/stores/account-reader.ts';
import { later } from './later-adapters.ts';

export const laterAccounts = ({ aws, stack }: { aws: AwsAccess; stack: string }): AccountReader =>
  later(async () => {
    const { documentClient } = await import('../../shared/adapters/dynamodb/sdk-client.ts');
    const file = await import('../../shared/adapters/dynamodb/ledger/dynamo-account-reader.ts');
    return file.dynamoAccountReader(documentClient(aws), stack);
  });
