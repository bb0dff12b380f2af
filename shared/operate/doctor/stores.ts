/** What the stores behind the relay allow in this account: tables, and the secrets of channels. */
import type { TableLimits } from '../aws-account.ts';
import { attention, ok, type Finding } from './finding.ts';

/** What AWS gives a table in most regions; a new account may have less. */
const usualTableUnits = 40_000;
const secretReads = '10,000 reads a second';

/** https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_DescribeLimits.html */
export function assessTables({ tableReads, tableWrites }: TableLimits, region: string): Finding[] {
  const found = `a table may have ${tableReads} reads and ${tableWrites} writes a second; a billed call writes to quotas twice`;
  if (Math.min(tableReads, tableWrites) >= usualTableUnits) return [ok('tables', found)];
  return [
    attention('tables', `${found}; ${usualTableUnits} is usual`, {
      where: 'shell',
      line: `aws service-quotas list-service-quotas --service-code dynamodb --region ${region}`,
    }),
  ];
}

/**
 * A secret is read once in some minutes by each environment, but a wave of new environments reads at once.
 * https://docs.aws.amazon.com/systems-manager/latest/userguide/parameter-store-throughput.html
 * @param isFast undefined: no channel has a secret there
 */
export function assessParameters(
  references: readonly string[],
  isFast: boolean | undefined,
  region: string,
): Finding[] {
  const check = 'secrets';
  if (isFast === undefined)
    return [
      references.length === 0
        ? ok(check, 'no channel has a secret')
        : ok(check, `all ${references.length} are in Secrets Manager, which allows ${secretReads}`),
    ];
  const parameters = references.filter(isParameter);
  const found = `${parameters.length} of ${references.length} are in Parameter Store, which allows`;
  if (isFast) return [ok(check, `${found} ${secretReads} here`)];
  return [
    attention(check, `${found} 40 reads a second: many new environments at once would be refused`, {
      where: 'shell',
      line: `aws ssm update-service-setting --setting-id /ssm/parameter-store/high-throughput-enabled --setting-value true --region ${region}`,
    }),
  ];
}

export const isParameter = (reference: string): boolean => reference.startsWith('ssm:');
