/**
 * How many calls at once the relay has. Without a reservation its answering functions share what the account has with
 * its own background jobs. https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html
 */
import type { Concurrency } from '../aws-account.ts';
import { attention, ok, type Finding } from './finding.ts';
import { lineOf, type StageFile } from './stage-file.ts';

const check = 'concurrency';
const option = 'reservedConcurrency';
/** AWS wants this many to stay unreserved. */
const unreservedMin = 100;
/** The functions that the option is for: each reserves as much. */
const reservingFunctions = 2;
/** What AWS gives an account that is not new. */
const usual = 1000;

export interface ConcurrencyParts {
  region: string;
  concurrency: Concurrency;
  file: StageFile;
  /** The option as deployed. Undefined: the stack does not say. */
  deployed: { option: unknown } | undefined;
}

export function assessConcurrency({ region, concurrency, file, deployed }: ConcurrencyParts): Finding[] {
  const { most, unreserved } = concurrency;
  const given = countOf(file.options?.[option] ?? deployed?.option);
  const has = (countOf(deployed?.option) ?? 0) * reservingFunctions;
  const max = Math.floor((unreserved + has - unreservedMin) / reservingFunctions);
  const room = `${most} calls at once in this account and region, ${unreserved} of them unreserved`;
  const quota: Finding[] = most < usual ? [smallQuota(most, region)] : [];
  const set = lineOf(file.name, option, max);
  if (given !== undefined && given <= max)
    return [
      ...quota,
      ok(check, `${room}; ${given} are reserved for each of chat and responses, ${max} can be`),
    ];
  if (given !== undefined && max >= 1)
    return [
      ...quota,
      attention(check, `${room}: ${option} ${given} is too much, the deployment would fail`, set),
    ];
  if (max < 1) {
    const none = `${room}: none can be reserved, since AWS keeps ${unreservedMin} unreserved`;
    return [
      ...quota,
      attention(check, given === undefined ? none : `${none}; take ${option} out of ${file.name}`),
    ];
  }
  const risk = "one tenant's calls may take what the relay's background jobs need";
  const reserved = deployed ? `none reserved: ${risk}` : 'whether the relay has reserved some is not known';
  return [
    ...quota,
    attention(check, `${room}, ${reserved}; at most ${max} can be, for each of chat and responses`, set),
  ];
}

const smallQuota = (most: number, region: string): Finding =>
  attention(check, `${most} calls at once is all that this account has in ${region}; ${usual} is usual`, {
    where: 'shell',
    line: `aws service-quotas request-service-quota-increase --service-code lambda --quota-code L-B99A9384 --desired-value ${usual} --region ${region}`,
  });

const countOf = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined);
