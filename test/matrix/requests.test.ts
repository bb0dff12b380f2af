import { beforeAll, describe, expect, it } from 'vitest';
import { dialects } from './endpoints.ts';
import { reasons } from './reasons.ts';
import { judgeRequests, placesOf, type Cell } from './requests.ts';

const decide =
  'carry it, name it as dropped, refuse it by its name, or add a rule with its reason to reasons.ts';

/** A strict upstream ends these calls until a refusal of any optional field is a lesson. */
const open = new Map([
  ['messages chat', ['top_k']],
  ['messages messages', ['temperature', 'top_p', 'top_k']],
]);

const cells: Cell[] = [];

const pairs = dialects.flatMap((endpoint) => dialects.map((dialect) => [endpoint, dialect] as const));
describe.each(pairs)('a request of %s to an upstream that speaks %s', (endpoint, dialect) => {
  let own: Cell[] = [];
  beforeAll(async () => {
    own = await judgeRequests(endpoint, dialect);
    cells.push(...own);
  });

  it('loses no field, block or item without saying so', () => {
    expect(own).toHaveLength(placesOf(endpoint).length);
    const lost = own.filter(({ outcome }) => outcome === 'lost');
    expect(lost.map(({ path, seen }) => `${path} has no effect (${seen}): ${decide}`)).toEqual([]);
  });

  it('goes on where the upstream refuses what it does not know', () => {
    const lost = own.filter(
      ({ outcome, strict }) => strict === 'lost' || (strict === 'refused' && outcome !== 'refused'),
    );
    const unexpected = lost.filter(({ path }) => !(open.get(`${endpoint} ${dialect}`) ?? []).includes(path));
    expect(unexpected.map(({ path, seen }) => `${path} ends the call (${seen}): ${decide}`)).toEqual([]);
    expect(lost.map(({ path }) => path).toSorted()).toEqual(
      (open.get(`${endpoint} ${dialect}`) ?? []).toSorted(),
    );
  });
});

it('every reason for a loss is needed', () => {
  const used = new Set(cells.flatMap(({ outcome, reason }) => (outcome === 'moot' ? [reason] : [])));
  expect(reasons.filter((reason) => !used.has(reason))).toEqual([]);
});
