import { describe, expect, it } from 'vitest';
import { compile, channel } from './rows.ts';
import { referenceProblem } from '../../../shared/config/rows/secret-reference.ts';

describe('a reference to a secret', () => {
  it.each(['ssm:/relay/relay/openai', 'ssm:/relay/relay-test/team-a/openai', 'secretsmanager:relay/openai'])(
    'is usable: %s',
    (reference) => {
      expect(referenceProblem(reference, { local: false })).toBeUndefined();
    },
  );

  it('is usable from the environment on a local stack only', () => {
    expect(referenceProblem('env:OPENAI_API_KEY', { local: true })).toBeUndefined();
    expect(referenceProblem('env:OPENAI_API_KEY', { local: false })).toContain('on a local stack only');
  });

  it('is usable from the variables that the owner of the stack named, `*` at an end for all that begin so', () => {
    const rules = { local: true, envSecrets: ['OPENAI_API_KEY', 'TEAM_*'] };
    for (const name of ['OPENAI_API_KEY', 'TEAM_', 'TEAM_KEY'])
      expect(referenceProblem(`env:${name}`, rules)).toBeUndefined();
    for (const name of ['HOME', 'OPENAI_API_KEY_2', 'XTEAM_KEY', 'SEAL_KEYS'])
      expect(referenceProblem(`env:${name}`, rules)).toContain(`RELAY_ENV_SECRETS=${name} to allow it`);
    expect(referenceProblem('env:skcanary123', rules)).not.toContain('canary');
  });

  it('is a problem of the row that names another variable', () => {
    const { results, snapshot } = compile(
      { channels: [channel({ secret: 'env:HOME' })] },
      { local: true, envSecrets: [] },
    );
    expect(results[0]?.problem).toContain('RELAY_ENV_SECRETS=HOME');
    expect(snapshot.channels).toEqual([]);
  });

  it.each([
    'ssm:/other/openai',
    'ssm:/relay/openai',
    'ssm:/relay/../x/y z',
    'secretsmanager:openai',
    'env:',
    'env:A B',
    'plain',
  ])('is a problem: %s', (reference) => {
    expect(referenceProblem(reference, { local: true })).toMatch(/^found /);
  });
});

describe('a secret that was typed into a row', () => {
  const canary = 'sk-proj-CANARYCANARYCANARY12345';

  it('is a problem that says how to store it', () => {
    const { results } = compile({ channels: [channel({ secret: canary })] });
    expect(results[0]?.problem).toContain('npx --no relay-ops secret new');
  });

  it.each([
    ['as the secret', { secret: canary }],
    ['in a list of secrets', { secret: ['ssm:/relay/relay/a', canary] }],
    ['in a bad list of secrets', { secret: [canary, 5] }],
    ['in a map as secret', { secret: { value: canary } }],
    ['after a prefix', { secret: `env:${canary}` }],
    ['as an attribute that does not exist', { api_key: canary }],
    ['as an attribute name', { [canary]: true }],
    ['as the endpoint', { endpoint: canary }],
    ['in the endpoint', { endpoint: `https://user:${canary}@api.example.com/v1` }],
    ['in the query of the endpoint', { endpoint: `https://api.example.com/v1?key=${canary}` }],
    ['as a model', { models: [`${canary} `, '?'] }],
    ['as a number', { priority: canary }],
    ['in params', { params: { set: { key: new Set([canary]) }, max_output_tokens: canary } }],
    ['as the type', { type: canary }],
    ['as a header in the mapper', { mapper: { [`Bearer ${canary}`]: 5 } }],
  ])('is never repeated: %s', (_case, attributes) => {
    const { results } = compile({ channels: [channel(attributes)] }, { local: true });
    expect(results[0]?.problem).toBeTypeOf('string');
    expect(JSON.stringify(results)).not.toContain('CANARY');
  });
});
