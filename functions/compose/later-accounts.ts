/** The reader of the account endpoints, loaded by the first call that needs it: with the SDK, which nothing else here needs. */
import type { AwsAccess } from '../../shared/adapters/system/environment.ts';
import type { AccountReader } from '../../shared/relay/ports/stores/account-reader.ts';

export function laterAccounts({ aws, stack }: { aws: AwsAccess; stack: string }): AccountReader {
  let opened: Promise<AccountReader> | undefined;
  const load = async (): Promise<AccountReader> => {
    const { documentClient } = await import('../../shared/adapters/dynamodb/sdk-client.ts');
    const file = await import('../../shared/adapters/dynamodb/ledger/dynamo-account-reader.ts');
    return file.dynamoAccountReader(documentClient(aws), stack);
  };
  const reader = (): Promise<AccountReader> =>
    (opened ??= load().catch((error: unknown) => {
      // The next call tries again.
      opened = undefined;
      throw error;
    }));
  return {
    quota: async (account) => (await reader()).quota(account),
    requests: async (...page) => (await reader()).requests(...page),
    grants: async (account) => (await reader()).grants(account),
    late: async (account) => (await reader()).late(account),
    days: async (...range) => (await reader()).days(...range),
  };
}
