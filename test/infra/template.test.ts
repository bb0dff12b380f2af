/**
 * Compares the whole template of a stack, and what each option changes in one without options, with golden files.
 * If a change is intended: `npm test -- test/infra/template.test.ts -u`, and read the diff of the golden file.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { checkResources } from '../../infra/local/template/template.ts';
import { optionSets } from './option-sets.ts';
import { readPage } from '../docs/pages.ts';
import { synthesize } from './synthesize.ts';

/** The options of the golden file: those with the most resources. */
const options = {
  alarmEmail: 'ops@example.com',
  domain: 'api.example.com',
  certificateArn: 'arn:aws:acm:us-east-1:123456789012:certificate/12345678-1234-1234-1234-123456789012',
};

/** If one resource does not suppress this rule, the rule checks all resources. */
const notSuppressible = 'CFN_NO_EXPLICIT_RESOURCE_NAMES';

test('the template equals the last reviewed one', async () => {
  await expect(shown(synthesize(options).template)).toMatchFileSnapshot('template.golden.json');
});

test('docs/scanners.md names each finding that a template suppresses, and each suppression of checkov has a reason', () => {
  const resources = Object.values(optionSets).flatMap((each) => {
    const { template, edge } = synthesize(each);
    return [template, ...Object.values(edge)].flatMap(({ Resources }) => Object.values(Resources));
  });
  const skipped = resources.flatMap(({ Metadata }) => Metadata?.checkov?.skip ?? []);
  expect(skipped.filter(({ comment }) => comment.length < 10)).toEqual([]);
  const suppressed = resources.flatMap(({ Metadata }) => Metadata?.guard?.SuppressedRules ?? []);
  const named = readPage('docs/scanners.md').match(/(?<=`)(CKV_AWS_\d+|[A-Z][A-Z\d]+_[A-Z\d_]+)(?=`)/g) ?? [];
  expect(new Set([...suppressed, ...skipped.map(({ id }) => id)])).toEqual(
    new Set(named.filter((name) => name !== notSuppressible)),
  );
});

describe.each(Object.entries(optionSets))('a stage with %s', (name, given) => {
  const { template, edge, isProtected } = synthesize(given);
  const { stage, region } = given;

  test('differs from one without options exactly as last reviewed', async () => {
    const { template: plain } = synthesize({ stage, ...(region !== undefined && { region }) });
    const changes = differences(comparable(plain), comparable({ isProtected, edge, ...template }));
    const file = `options.golden/${name.replaceAll(/[^a-z0-9]+/gi, '-')}.txt`;
    await expect([...changes, ''].join('\n')).toMatchFileSnapshot(file);
  });

  test('runs on one machine, except for servers: RELAY_COMPUTE=server runs one as a process', () => {
    const check = () => checkResources(template.Resources);
    if (given['compute'] === 'ecs') expect(check).toThrow('unknown resource type AWS::E');
    else expect(check).not.toThrow();
  });
});

/** One line for each added, removed or changed value; for lists, one for each item. */
function* differences(was: unknown, is: unknown, path = ''): Generator<string> {
  if (JSON.stringify(was) === JSON.stringify(is)) return;
  if (Array.isArray(was) && Array.isArray(is)) {
    const texts = (list: unknown[]) => new Set(list.map((each) => JSON.stringify(each)));
    const [before, after] = [texts(was), texts(is)];
    for (const each of before) if (!after.has(each)) yield `${path} - ${each}`;
    for (const each of after) if (!before.has(each)) yield `${path} + ${each}`;
  } else if (isMap(was) && isMap(is))
    for (const name of Object.keys({ ...was, ...is }))
      yield* differences(was[name], is[name], path === '' ? name : `${path}.${name}`);
  else yield `${path}: ${JSON.stringify(was) ?? 'nothing'} -> ${JSON.stringify(is) ?? 'nothing'}`;
}

const isMap = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Masks what changes with every release: hashes of bundles, version numbers, and ids of function versions, which hash all variables. */
function shown(value: object): string {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  const text = JSON.stringify(value, null, 2)
    .replaceAll(/[0-9a-f]{64}/g, 'HASH')
    .replaceAll(/(?<=CurrentVersion)[0-9A-Fa-f]{40}/g, 'HASH')
    // Environment variables of a function, or of a task, where they are a list.
    .replaceAll(/(?<="RELAY_VERSION"(?:: |,\s+"Value": ))"[^"]+"/g, '"VERSION"')
    .replaceAll(`LLM relay ${version}`, 'LLM relay VERSION');
  return `${text}\n`;
}

const comparable = (value: object): unknown => JSON.parse(shown(value));
