/** Properties of functions that must not depend on their descriptions; template.test.ts pins the rest in golden files. */
import { describe, expect, test } from 'vitest';
import {
  answeringFunctions,
  answersCalls,
  callingFunctions,
  functionNames,
} from '../../infra/stack/constructs/function-descriptions.ts';
import { readable, resourcesOf, synthesize } from './synthesize.ts';

const { template } = synthesize({ stage: 'test', originSecrets: [1, 2], sealKeys: [1, 2] });

/** The environment of each function, by its short name. */
const variables = (of = template): [name: string, variables: Record<string, unknown>][] =>
  resourcesOf(of, 'AWS::Lambda::Function').map(([id, { Properties }]) => [
    id.replace(/^Functions([a-z]+)Function.*$/, '$1'),
    (Properties.Environment as { Variables: Record<string, unknown> }).Variables,
  ]);

describe('functions', () => {
  test('that answer calls are updated after those that read what they write', () => {
    const functions = resourcesOf(template, 'AWS::Lambda::Function');
    const idOf = (name: string): string | undefined =>
      functions.find(([id]) => id.startsWith(`Functions${name}Function`))?.[0];
    const shifted = ['ledger', 'sweeper', 'grants', 'catalog'];
    const aliases = resourcesOf(template, 'AWS::Lambda::Alias').map(([id]) => id);
    const readers = shifted.flatMap((name) => [
      idOf(name),
      aliases.find((id) => id.startsWith(`Functions${name}Live`)),
    ]);
    expect(readers).not.toContain(undefined);
    for (const name of callingFunctions) {
      const [, resource] = functions.find(([id]) => id === idOf(name)) ?? [];
      expect(resource?.DependsOn).toEqual(expect.arrayContaining(readers));
    }
  });

  test('have a public URL only at their alias, so none bypasses the version that a deployment chose', () => {
    const urls = resourcesOf(template, 'AWS::Lambda::Url').map(([, { Properties }]) => Properties);
    expect(urls).toHaveLength(6);
    for (const { Qualifier } of urls) expect(Qualifier).toBe('live');
    const open = resourcesOf(template, 'AWS::Lambda::Permission')
      .map(([, { Properties }]) => Properties)
      .filter(({ Principal }) => Principal === '*');
    expect(open).toHaveLength(12);
    for (const { FunctionName } of open) expect(JSON.stringify(FunctionName)).toMatch(/Live/);
  });

  test('time out after 15 minutes at most, and background runs after backgroundMinutes', () => {
    const { template: patient } = synthesize({ backgroundMinutes: 30 });
    const timeouts = (of: typeof template) =>
      resourcesOf(of, 'AWS::Lambda::Function').map(
        ([id, { Properties }]) => [id, Number(Properties['Timeout'])] as const,
      );
    for (const [, seconds] of timeouts(template)) expect(seconds).toBeLessThanOrEqual(900);
    const changed = timeouts(patient).filter(
      ([id, seconds]) => seconds !== new Map(timeouts(template)).get(id),
    );
    expect(changed).toEqual([[expect.stringContaining('background'), 1800]]);
  });

  test('that answer calls reserve the concurrency of reservedConcurrency, and receive the number', () => {
    const { template: reserving } = synthesize({ reservedConcurrency: 40 });
    const reserved = (of: typeof template) =>
      resourcesOf(of, 'AWS::Lambda::Function').map(
        ([, { Properties }]) => Properties['ReservedConcurrentExecutions'],
      );
    const known = variables(reserving).map(([, { RELAY_CONCURRENCY }]) => RELAY_CONCURRENCY);
    const answering = functionNames.map(answersCalls);
    expect(reserved(reserving)).toEqual(answering.map((reserves) => (reserves ? 40 : undefined)));
    expect(known).toEqual(answering.map((reserves) => (reserves ? '40' : undefined)));
    // A new AWS account has no spare concurrency.
    expect(reserved(template)).toEqual(functionNames.map(() => undefined));
  });

  test('receive only the secrets that they need, and never the variable of the local stack', () => {
    const value = (of: string, number: number) =>
      String.raw`\{\{resolve:secretsmanager:<${of}${number}\w+>:SecretString:::\}\}`;
    const accepted = new RegExp(`^${value('OriginSecret', 1)},${value('OriginSecret', 2)}$`);
    const seals = new RegExp(
      String.raw`^\{"1":"${value('SealKeysSecret', 1)}","2":"${value('SealKeysSecret', 2)}"\}$`,
    );
    for (const [name, { ORIGIN_SECRETS, SEAL_KEYS, PSEUDONYM_KEY }] of variables()) {
      if ([...answeringFunctions, 'catalog', 'payments', 'selfservice'].includes(name))
        expect(readable(ORIGIN_SECRETS)).toMatch(accepted);
      else expect([name, ORIGIN_SECRETS]).toEqual([name, '']);
      if (callingFunctions.some((calling) => calling === name)) {
        expect(readable(SEAL_KEYS)).toMatch(seals);
        expect(PSEUDONYM_KEY).toEqual({ Ref: 'AWS::StackId' });
      } else expect([name, SEAL_KEYS, PSEUDONYM_KEY]).toEqual([name, undefined, undefined]);
    }
    expect(JSON.stringify(template)).not.toContain('RELAY_LOCAL');
  });
});
