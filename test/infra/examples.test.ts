/** The apps in `examples/`, synthesized with the CDK that is installed here. test/long/teams.test.ts uses the oldest one. */
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { withoutReport } from '../../infra/stack/create-app.ts';
import { root } from '../docs/pages.ts';
import { loadRouter } from '../support/cells-rig.ts';
import { hashFunctionsOnce, resourcesOf, withoutCopies, type Template } from './synthesize.ts';

const folder = path.join(root, 'examples');
const examples = readdirSync(folder).filter((name) => !name.endsWith('.md'));
const apps = examples.filter((name) => existsSync(path.join(folder, name, 'app.ts')));
const outputs = mkdtempSync(path.join(tmpdir(), 'relay-examples-'));

beforeAll(async () => {
  // Skips copies of the bundles and CloudFormation's rules, which take most of the time and have other tests.
  const context = { ...withoutCopies, ...withoutReport };
  vi.stubEnv('CDK_CONTEXT_JSON', JSON.stringify(context));
  vi.stubEnv('CDK_VALIDATION', 'false');
  const stop = hashFunctionsOnce();
  for (const name of apps) {
    vi.stubEnv('CDK_OUTDIR', path.join(outputs, name));
    await import(path.join(folder, name, 'app.ts'));
  }
  stop();
  vi.unstubAllEnvs();
}, 120_000);
afterAll(() => rmSync(outputs, { recursive: true }));

/** Returns the template of the first stack whose file begins with this name, stacks of stages included. */
function readTemplate(app: string, stack: string): Template {
  const files = readdirSync(path.join(outputs, app), { recursive: true, encoding: 'utf8' });
  // Stages add a hash to the name.
  const pattern = new RegExp(`(^|/)${stack}[0-9A-F]*\\.template\\.json$`);
  const found = files.find((file) => pattern.test(file)) ?? `${stack}.template.json`;
  return JSON.parse(readFileSync(path.join(outputs, app, found), 'utf8')) as Template;
}

test.each([
  ['own-domain-with-waf', 'relay-edge-us-east-1', 'AWS::WAFv2::WebACL', 1],
  ['own-domain-with-waf', 'relay', 'AWS::CertificateManager::Certificate', 1],
  ['own-domain-with-waf', 'relay', 'AWS::Route53::RecordSet', 2],
  ['private-api', 'relay', 'AWS::EC2::VPCEndpoint', 2],
  ['private-api', 'relay', 'AWS::CloudFront::Distribution', 0],
  ['ecs', 'relay', 'AWS::ECS::Service', 1],
  ['pipeline', 'relay-pipeline', 'AWS::CodePipeline::Pipeline', 1],
  ['pipeline', 'betarelay', 'AWS::Lambda::Url', 6],
  ['pipeline', 'liverelay', 'AWS::Lambda::Url', 6],
  ['cells', 'cell-b', 'AWS::ApiGateway::RestApi', 1],
  ['cells', 'router', 'AWS::CloudFront::KeyValueStore', 1],
])('the example %s creates in %s of type %s: %i', (app, stack, type, count) => {
  expect(resourcesOf(readTemplate(app, stack), type)).toHaveLength(count);
});

test.each(examples)('the example %s is short, and its README needs no other page', (name) => {
  const files = readdirSync(path.join(folder, name));
  const code = files.filter((file) => /\.(ts|js|tf)$/.test(file));
  const lines = code.map(
    (file) => readFileSync(path.join(folder, name, file), 'utf8').split('\n').length - 1,
  );
  expect(Math.max(...lines)).toBeLessThanOrEqual(60);
  const page = readFileSync(path.join(folder, name, 'README.md'), 'utf8');
  for (const part of ['## Deploy', '## Check', '## Remove', '## Costs']) expect(page).toContain(part);
  // Without this advice a second deployment fails at the names of the tables.
  expect(page).toMatch(/If the first .* fails, its .*tables stay/);
  expect(page).not.toMatch(/\]\(\.\./);
});

describe('the router of cells', () => {
  const hosts = ['a', 'b', 'c', 'd'].map((name) => `${name}.execute-api.us-east-1.amazonaws.com`);
  const router = loadRouter(hosts);
  /** Returns the host that CloudFront's function chooses for each account. */
  const route = (accounts: string[], stored: Record<string, string>): Promise<string[]> =>
    Promise.all(accounts.map((account) => router(`${account}.api.example.com`, stored)));

  const accounts = Array.from({ length: 1000 }, (_, index) => `account-${index}`);
  const slots = '0123'.repeat(64);

  test('spreads accounts evenly', async () => {
    const counts = Map.groupBy(await route(accounts, { slots }), (host) => host);
    expect([...counts.keys()].toSorted()).toEqual(hosts);
    for (const { length } of counts.values()) expect(length).toBeGreaterThan(200);
  });

  test('moves only the accounts of the slot whose cell changes', async () => {
    const before = await route(accounts, { slots });
    const after = await route(accounts, { slots: `3${slots.slice(1)}` });
    const moved = accounts.filter((_, index) => before[index] !== after[index]);
    expect(moved.length).toBeGreaterThan(0);
    expect(moved.every((account) => createHash('sha256').update(account).digest()[0] === 0)).toBe(true);
  });

  test('sends an account with its own cell there', async () => {
    const [usual = '', other] = await route(['acme', 'globex'], { slots });
    const cell = (hosts.indexOf(usual) + 1) % 4;
    expect(await route(['acme', 'globex'], { slots, 'account:acme': `${cell}` })).toEqual([
      hosts[cell],
      other,
    ]);
  });

  test('reads the account in lower case, up to the first dot', async () => {
    const [host = ''] = await route(['acme'], { slots });
    for (const name of [
      'ACME.API.Example.com',
      'acme.api.example.com.',
      'acme.api.example.com:443',
      'acme.b.example.com',
    ])
      expect([name, await router(name, { slots })]).toEqual([name, host]);
  });

  test('throws if the map names no cell, so that CloudFront answers 503', async () => {
    const chosen = (values: Record<string, string>): Promise<string> =>
      router('acme.api.example.com', values).catch(() => 'failed');
    const wrong = { '': slots, '9': slots, '?': slots, '10': slots };
    for (const [moved, own] of Object.entries(wrong))
      expect([moved, await chosen({ slots: own, 'account:acme': moved })]).toEqual([
        moved,
        moved === '' ? hosts[Number(slots[0x82])] : 'failed',
      ]);
    for (const value of [slots.slice(0, 0x82), '9'.repeat(256), ' '.repeat(256), ''])
      expect([value, await chosen({ slots: value })]).toEqual([value, 'failed']);
    expect(await chosen({})).toBe('failed');
    // A longer map is read up to its 256th character.
    expect(await chosen({ slots: `${slots}3` })).toBe(hosts[Number(slots[0x82])]);
  });
});
