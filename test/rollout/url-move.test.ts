/** Moving the origins from the functions' URLs to those of their aliases, in any order that CloudFormation may take. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { resourcesOf, synthesize, type Template } from '../infra/synthesize.ts';
import { SeededRandom } from '../simulation/seeded-random.ts';
import { stackUpdate, type Step } from './stack-update.ts';

/** The template of stacks from before the alias, without what no URL depends on: `urls-before.json` says of which commit. */
const before = JSON.parse(
  readFileSync(path.join(import.meta.dirname, 'urls-before.json'), 'utf8'),
) as Template;
const after = synthesize().template;
/** The release after: URLs of functions themselves are gone. */
const next = withoutFormerUrls(after);
const orders = 100;

function withoutFormerUrls(template: Template): Template {
  const Resources = Object.fromEntries(
    Object.entries(template.Resources).filter(([id]) => !(id in before.Resources && isUrlPart(template, id))),
  );
  return { ...template, Resources };
}

function isUrlPart({ Resources }: Template, id: string): boolean {
  const isOfUrl = ['AWS::Lambda::Url', 'AWS::Lambda::Permission'].includes(Resources[id]?.Type ?? '');
  return isOfUrl && /FunctionFunctionUrl|Functioninvoke/.test(id);
}

/** What there is at one moment: `before <id>` and `after <id>` of a resource that is replaced are two. */
type Present = Map<string, Template>;

interface Origin {
  url: string;
  template: Template;
}

function originsOf(template: Template): Origin[] {
  const [[, distribution] = []] = resourcesOf(template, 'AWS::CloudFront::Distribution');
  if (distribution === undefined) throw new Error('no distribution');
  const { Origins } = distribution.Properties['DistributionConfig'] as {
    Origins: { DomainName: unknown }[];
  };
  return Origins.map(({ DomainName }) => ({
    url: /"Fn::GetAtt":\["(\w+)","FunctionUrl"\]/.exec(JSON.stringify(DomainName))?.[1] ?? '',
    template,
  }));
}

/** A URL answers when it is there with what it points at, and both permissions of what it points at are. */
function answers(present: Present, { url, template }: Origin): boolean {
  const resource = template.Resources[url];
  const there = present.get(url)?.Resources[url];
  if (JSON.stringify(there?.Properties) !== JSON.stringify(resource?.Properties)) return false;
  const target = JSON.stringify([resource?.Properties['TargetFunctionArn']]);
  const functionId = /\["(\w+)","Arn"\]/.exec(target)?.[1] ?? '';
  const { Qualifier } = resource?.Properties ?? {};
  const alias = resourcesOf(template, 'AWS::Lambda::Alias').find(
    ([, { Properties }]) =>
      JSON.stringify(Properties['FunctionName']).includes(`"${functionId}"`) &&
      Properties['Name'] === Qualifier,
  )?.[0];
  if (Qualifier !== undefined && (alias === undefined || !present.has(alias))) return false;
  const permitted = resourcesOf(template, 'AWS::Lambda::Permission').filter(([id, { Properties }]) => {
    const named = JSON.stringify(Properties['FunctionName']);
    const isOf = alias === undefined ? named.includes(`"${functionId}"`) : named.includes(`"${alias}"`);
    return isOf && Properties['Principal'] === '*' && present.has(id);
  });
  return present.has(functionId) && permitted.length === 2;
}

/** Types whose coming or going may make a URL answer no more. */
const ofUrls = new Set(
  ['Url', 'Permission', 'Alias', 'Version', 'Function'].map((type) => `AWS::Lambda::${type}`),
);

/** Follows an update, step by step. Edge locations may use the old and the new origin from an update's begin on. */
function lostIn(from: Template, to: Template, steps: Step[]): string[] {
  const present: Present = new Map(Object.keys(from.Resources).map((id) => [id, from]));
  let used = originsOf(from);
  const lost: string[] = [];
  const look = (step: string): void => {
    for (const origin of used) if (!answers(present, origin)) lost.push(`${step}: ${origin.url}`);
  };
  look('at first');
  for (const { kind, id, of } of steps) {
    if (to.Resources[id]?.Type === 'AWS::CloudFront::Distribution') {
      used = used.concat(originsOf(to));
      look(`${kind} ${id}`);
      // CloudFormation waits until the distribution is deployed everywhere.
      used = originsOf(to);
    } else if (!ofUrls.has((to.Resources[id] ?? from.Resources[id])?.Type ?? '')) continue;
    else if (kind === 'delete') {
      if (present.get(id) === (of === 'before' ? from : to)) present.delete(id);
    } else present.set(id, to);
    look(`${kind} ${id}`);
  }
  return lost;
}

const seeds = Array.from({ length: orders }, (_, seed) => seed + 1);
const randomOf = (seed: number): (() => number) => {
  const random = new SeededRandom(seed);
  return () => random.next();
};

describe('moving the origins to the aliases', () => {
  test('loses no call in any order of CloudFormation', () => {
    const update = stackUpdate(before, after);
    for (const seed of seeds) expect(lostIn(before, after, update(randomOf(seed)))).toEqual([]);
  });

  test('keeps the URLs of the functions themselves for one release, for answers that began there', () => {
    const steps = stackUpdate(before, after)(randomOf(1));
    const deleted = steps.filter(({ kind }) => kind === 'delete').map(({ id }) => before.Resources[id]?.Type);
    expect(deleted).not.toContain('AWS::Lambda::Url');
    for (const [id] of resourcesOf(before, 'AWS::Lambda::Url'))
      expect(after.Resources[id]?.Properties).toEqual(before.Resources[id]?.Properties);
  });

  test('loses no call when the update fails after any of its steps and is rolled back', () => {
    const update = stackUpdate(before, after);
    for (const seed of seeds.slice(0, 30)) {
      const steps = update(randomOf(seed)).filter(({ kind }) => kind !== 'delete');
      const failed = steps.slice(0, Math.floor(randomOf(seed + 1000)() * steps.length));
      const reached = { ...before, Resources: { ...before.Resources } };
      for (const { id } of failed) reached.Resources[id] = after.Resources[id] as never;
      const back = stackUpdate(reached, before)(randomOf(seed + 2000));
      expect(lostIn(reached, before, back)).toEqual([]);
    }
  });

  test('lets the release after remove them, also for stacks that skip this one', () => {
    for (const from of [after, before]) {
      const update = stackUpdate(from, next);
      for (const seed of seeds.slice(0, 50)) expect(lostIn(from, next, update(randomOf(seed)))).toEqual([]);
    }
    expect(resourcesOf(next, 'AWS::Lambda::Url')).toHaveLength(4);
  });
});
