/**
 * Today's template against the one that the first version deployed, and against itself: what a deployed stack keeps its data
 * in must not move, and no change of the template goes unseen.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { identities, stateful, type Identity } from './template-identity.ts';
import { synthesize, type Template } from './synthesize.ts';

const firstVersion = JSON.parse(
  readFileSync(join(import.meta.dirname, 'first-version.golden.json'), 'utf8'),
) as Record<string, Identity>;

/** The options of the golden file: those with the most resources. */
const options = {
  alarmEmail: 'ops@example.com',
  domain: 'api.example.com',
  certificateArn: 'arn:aws:acm:us-east-1:123456789012:certificate/12345678-1234-1234-1234-123456789012',
};

let template: Template;
let today: Record<string, Identity>;

beforeAll(() => {
  ({ template } = synthesize(options));
  today = identities(template);
});

const kept = Object.entries(firstVersion).filter(([, { type }]) => stateful.has(type));

describe('a stack of the first version, updated', () => {
  test.each(kept)('keeps %s as it is', (logicalId, identity) => {
    // Later versions may have added to it, but a name would replace what had none.
    expect(today[logicalId]).toMatchObject(identity);
    expect(today[logicalId]?.name).toBe(identity.name);
  });

  test('has resources of every kind that keeps data or an address', () => {
    expect([...new Set(kept.map(([, { type }]) => type))].toSorted()).toEqual([...stateful].toSorted());
  });

  test('never finds another type under an id: CloudFormation refuses that', () => {
    const changed = Object.entries(firstVersion).filter(
      ([id, { type }]) => (today[id]?.type ?? type) !== type,
    );
    expect(changed).toEqual([]);
  });

  test('never gives a name to another resource while the old one still has it', () => {
    const holders = new Map(
      Object.entries(firstVersion).flatMap(([id, { type, name }]) => (name ? [[`${type} ${name}`, id]] : [])),
    );
    const taken = Object.entries(today).filter(
      ([id, { type, name }]) => name !== undefined && (holders.get(`${type} ${name}`) ?? id) !== id,
    );
    expect(taken).toEqual([]);
  });
});

test('the template is the one that was looked at last', async () => {
  const shown = `${JSON.stringify(withoutHashes(template), null, 2)}\n`;
  await expect(
    shown,
    'The template has changed. If that is meant: npm test -- test/infra/template.test.ts -u, and read the diff of test/infra/template.golden.json',
  ).toMatchFileSnapshot('template.golden.json');
});

/** Hashes of bundles and version numbers change with every release. */
function withoutHashes(value: Template): unknown {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  return JSON.parse(
    JSON.stringify(value)
      .replaceAll(/[0-9a-f]{64}/g, 'HASH')
      .replaceAll(`"RELAY_VERSION":"${version}"`, '"RELAY_VERSION":"VERSION"')
      .replaceAll(`LLM relay ${version}`, 'LLM relay VERSION'),
  );
}
