/** Recomputes the limits of docs/scale.md, in calls a second, from the write units of a call and the quotas of AWS. */
import { expect, test } from 'vitest';
import { lifetimeMsMax } from '../../shared/adapters/secrets/secret-store.ts';
import { snapshotCopies } from '../../shared/adapters/dynamodb/runtime-items.ts';
import { countersMax, shardCountMax } from '../../shared/billing/shares.ts';
import { callUnits } from '../support/call-units.ts';
import { readPage } from './pages.ts';

const text = readPage('docs/scale.md').replaceAll(/\s+/g, ' ');
const format = (figure: number): string => Math.round(figure).toLocaleString('en-US');
/** The page rounds down to two digits. */
const floor = (figure: number): string => format(Math.floor(figure / 100) * 100);

/** AWS's quotas, as in the page's section "Quotas". */
const quotas = {
  concurrency: 1_000,
  newEnvironments: 1_000,
  tableWrites: 40_000,
  partitionWrites: 1_000,
  edgeRequests: 250_000,
  apiRequests: 10_000,
  keyUses: 10_000,
};
const seconds = 10;
const secrets = 10;
/** An environment reads a secret again after half to all of this time. */
const secretSeconds = (0.75 * lifetimeMsMax) / 1_000;
const usesOfStart = 1 + secrets;
const usesOfCall = (seconds * secrets) / secretSeconds;

test.each([
  ['**Lambda** _Concurrent executions_ (L-B99A9384)', quotas.concurrency],
  ['Fixed', quotas.newEnvironments, ' environments in 10 s per function'],
  ['_Table-level read_ and _write throughput limit_', quotas.tableWrites],
  ['_Requests per second per distribution_', quotas.edgeRequests],
  ['_Throttle rate_ (L-8A5B8E43)', quotas.apiRequests],
  ['_Cryptographic operations (symmetric) request rate_', quotas.keyUses],
])('the quota %s is %i', (name, quota, rest = '') => {
  expect(text).toContain(`${name}: ${format(quota)}${rest}`);
});

test.each([
  `For calls of ${seconds} s with one environment each: 1,000 streams at once are ${1_000 / seconds} calls a second.`,
  `so a ramp from zero takes ${(10_000 / quotas.newEnvironments) * 10} s`,
  `new environments in 10 s with ${secrets} secrets take ${format((quotas.newEnvironments / 10) * usesOfStart)} a second`,
  `and 10,000 busy ones ${Math.floor(((10_000 / seconds) * usesOfCall) / 10) * 10} `,
  `**Lambda**: ${quotas.concurrency / seconds} by default, ${format(30_000 / seconds)} with 30,000 environments, ${quotas.newEnvironments / seconds} more every 10 s.`,
  `\`daily\` ${floor(quotas.tableWrites / callUnits.daily)} (a call takes ${callUnits.daily})`,
  `\`quotas\` ${format(quotas.tableWrites / callUnits.quotas)} (${callUnits.quotas})`,
  `\`ledger\` ${format(quotas.tableWrites / callUnits.ledger)}`,
  `**API Gateway**: ${format(quotas.apiRequests)}. **CloudFront**: ${format(quotas.edgeRequests)}. **KMS**: ${format(quotas.keyUses / usesOfCall)} with ${secrets} secrets.`,
  // Plus one unit for the count of the key's calls a minute.
  `**A key's budget**: one item, ${quotas.partitionWrites / (callUnits.budget + 1)} calls a second`,
  `**An account with a balance**: ${shardCountMax} shards`,
  `**A metered account**: ${format(countersMax)} counters`,
  `in ${snapshotCopies} copies`,
])('the page says: %s', (sentence) => {
  expect(text).toContain(sentence);
});

test('the warm throughput is enough for 1,000 calls a second', () => {
  const warm = [...text.matchAll(/WriteUnitsPerSecond=(\d+)/g)].map(([, units]) => Number(units));
  expect(warm).toHaveLength(2);
  const { daily, quotas: money, ledger } = callUnits;
  expect(Math.min(...warm)).toBeGreaterThan(1_000 * Math.max(daily, money, ledger));
});
