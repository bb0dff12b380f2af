/** Runs `npm run deploy` up to its call of CDK, against CloudFormation on a loopback port. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { deployStage } from '../../infra/deploy/deploy-stage.ts';
import { LoopbackAws } from './loopback/aws.ts';
import { refuse } from './loopback/xml.ts';

const folder = mkdtempSync(join(tmpdir(), 'relay-deploy-stage-'));
const aws = new LoopbackAws();
let endpoint: string;

beforeAll(async () => {
  endpoint = await aws.listen();
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'AKIALOOPBACK');
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'loopback');
  vi.stubEnv('AWS_PROFILE', undefined);
});

beforeEach(() => {
  aws.stacks.forget();
});

afterAll(async () => {
  vi.unstubAllEnvs();
  await aws.close();
  rmSync(folder, { recursive: true });
});

/** @param outputs undefined for a version that did not publish its options */
function deployed(name: string, outputs: Record<string, string> = {}, status = 'UPDATE_COMPLETE'): void {
  aws.stacks.stands(name, outputs, status);
}

const publishes = (name: string, options: object): void => {
  deployed(name, { Options: JSON.stringify(options) });
};

const write = (file: string, options: object): void => {
  writeFileSync(join(folder, file), JSON.stringify(options));
};

async function run(...args: string[]) {
  return runAt(endpoint, args);
}

async function runAt(address: string, args: string[]) {
  const printed: string[] = [];
  const cdkCalls: (readonly string[])[] = [];
  const exitCode = await deployStage(args, {
    folder,
    environment: { AWS_ENDPOINT_URL: address, AWS_REGION: 'us-west-2' },
    print: (line) => printed.push(line),
    cdk: async (cdkArgs) => {
      cdkCalls.push(cdkArgs);
      return Promise.resolve(0);
    },
  });
  return { exitCode, said: printed.join('\n'), cdkCalls };
}

describe('npm run deploy', () => {
  test('deploys the options of the file to a stack that does not exist, and passes arguments to CDK', async () => {
    write('relay.json', { alarmEmail: 'ops@example.com' });
    const { exitCode, said, cdkCalls } = await run(
      '--import-existing-resources',
      '--require-approval',
      'never',
    );
    expect(exitCode).toBe(0);
    expect(said).toBe(
      'relay.json: options alarmEmail\nstack relay in us-west-2 does not exist yet, so there are no deployed options to compare',
    );
    expect(cdkCalls).toEqual([['deploy', '--import-existing-resources', '--require-approval', 'never']]);
  });

  test('disables the termination protection of a stack whose first deployment failed, so that CDK can delete it', async () => {
    write('relay.json', {});
    deployed('relay', {}, 'ROLLBACK_COMPLETE');
    const stack = aws.stacks.named('relay');
    Object.assign(stack ?? {}, { isProtected: true });
    const { said, cdkCalls } = await run();
    expect(said).toContain(
      'Its first deployment failed. Removing its termination protection, so that CDK can delete the remains',
    );
    expect(stack?.isProtected).toBe(false);
    expect(cdkCalls).toHaveLength(1);
  });

  test.each([
    'CREATE_IN_PROGRESS',
    'UPDATE_IN_PROGRESS',
    'UPDATE_ROLLBACK_IN_PROGRESS',
    'DELETE_IN_PROGRESS',
  ])(
    'stops while the stack is %s, because a second deployment could drop an option of the first unseen',
    async (status) => {
      write('relay.json', {});
      deployed('relay', status.startsWith('UPDATE') ? { Options: '{}' } : {}, status);
      await expect(run()).rejects.toThrow(
        `stack relay in us-west-2 is ${status}: wait until it finishes, then repeat this command`,
      );
    },
  );

  test('reports that nothing changes, and keeps the protection of a running stack', async () => {
    write('relay.test.json', { memory: { chat: 512 }, region: 'eu-central-1' });
    publishes('relay-test', { region: 'eu-central-1', 'memory.chat': 512 });
    Object.assign(aws.stacks.named('relay-test') ?? {}, { isProtected: true });
    const { said, cdkCalls } = await run('--stage', 'test');
    expect(said).toContain('stack relay-test in eu-central-1 has the same options');
    expect(cdkCalls).toEqual([['deploy', '--context', 'stage=test']]);
    expect(aws.stacks.named('relay-test')?.isProtected).toBe(true);
  });

  test('refuses to drop an option before CDK runs, names it, and lists the other changes', async () => {
    write('relay.test.json', { sealKeys: [1, 2], alarmEmail: 'ops@example.com' });
    publishes('relay-test', { domain: 'llm.example.com', sealKeys: [2], 'memory.chat': 512 });
    const { exitCode, said, cdkCalls } = await run('--stage=test');
    expect(exitCode).toBe(1);
    expect(cdkCalls).toEqual([]);
    expect(said).toBe(
      [
        'relay.test.json: options alarmEmail, sealKeys',
        'stack relay-test in us-west-2 will change:',
        '  alarmEmail: "ops@example.com" (new)',
        '  sealKeys: [2] -> [1,2]',
        '  domain: would be removed (deployed: "llm.example.com")',
        '  memory.chat: would be removed (deployed: 512)',
        'stopped: this deployment would remove domain, memory.chat',
        'Add them to relay.test.json, or re-run with --accept-drop domain --accept-drop memory.chat',
      ].join('\n'),
    );
  });

  test('drops accepted options, given one by one or as a whole map', async () => {
    write('relay.test.json', {});
    publishes('relay-test', { domain: 'llm.example.com', 'memory.chat': 512 });
    const half = await run('--stage', 'test', '--accept-drop', 'memory');
    expect(half.said).toContain('stopped: this deployment would remove domain');
    expect(half.cdkCalls).toEqual([]);
    const { said, cdkCalls } = await run(
      '--stage',
      'test',
      '--accept-drop',
      'memory',
      '--accept-drop=domain',
    );
    expect(said).toContain('domain: removed, as accepted');
    expect(cdkCalls).toEqual([['deploy', '--context', 'stage=test']]);
  });

  test.each([
    ['originSecrets', {}, [2], 'originSecrets without 1: .*403. Deploy \\[1,2\\] first, then \\[2\\]'],
    ['originSecrets', { originSecrets: [2] }, undefined, 'originSecrets without 2: .*Deploy \\[2,1\\] first'],
    ['sealKeys', {}, [2], 'sealKeys without 1: .*90 days. Deploy \\[1,2\\] first, then \\[2\\]'],
    ['sealKeys', { sealKeys: [1, 3] }, [1], 'sealKeys without 3: .*add one above 3 instead'],
  ])(
    'refuses a rotation of %s in one step, from %j to %j, and names the two steps',
    async (name, before, after, says) => {
      publishes('relay', before);
      write('relay.json', { [name]: after });
      const { exitCode, said, cdkCalls } = await run('--accept-drop', name);
      expect([exitCode, cdkCalls]).toEqual([1, []]);
      expect(said).toMatch(new RegExp(`^stopped: ${says}`, 'm'));
    },
  );

  test.each([
    [{ originSecrets: [1, 2] }, { originSecrets: [2] }],
    [{ sealKeys: [1, 2] }, { sealKeys: [2, 3] }],
    [{}, { originSecrets: [1, 2], sealKeys: [1, 2] }],
  ])('accepts a step of a rotation from %j to %j', async (before, after) => {
    publishes('relay', before);
    write('relay.json', after);
    expect((await run()).cdkCalls).toHaveLength(1);
  });

  test('refuses to remove a model from bedrockModels until that or the whole option is accepted', async () => {
    const [one, two] = ['a-1:0', 'b-1:0'].map(
      (name) => `arn:aws:bedrock:us-east-1::foundation-model/${name}`,
    );
    publishes('relay', { bedrockModels: [one, two] });
    write('relay.json', { bedrockModels: [two] });
    const { exitCode, said } = await run();
    expect(exitCode).toBe(1);
    expect(said).toContain(`stopped: this deployment would remove bedrockModels.${one}`);
    expect((await run('--accept-drop', `bedrockModels.${one}`)).cdkCalls).toHaveLength(1);
    expect((await run('--accept-drop', 'bedrockModels')).cdkCalls).toHaveLength(1);
  });

  test('treats a default written in the file as a value, not as a drop', async () => {
    publishes('relay', { disposable: true, webAcl: 'arn:aws:wafv2:x', 'memory.chat': 512 });
    write('relay.json', { disposable: false, webAcl: false, memory: { chat: 512 } });
    const { said, cdkCalls } = await run();
    expect(said).toContain('disposable: true -> false');
    expect(cdkCalls).toHaveLength(1);
    publishes('relay', {});
    expect((await run('--accept-drop', 'x')).said).not.toContain('disposable');
  });

  test.each(['{"domain":', 'null'])('names the stack if its outputs are %s', async (Options) => {
    deployed('relay', { Options });
    write('relay.json', {});
    await expect(run()).rejects.toThrow(/the options of stack relay in us-west-2: .*Options/);
  });

  test('refuses to overwrite a stack that published no options', async () => {
    write('relay.json', {});
    deployed('relay', { BaseUrl: 'https://llm.example.com/v1' });
    await expect(run()).rejects.toThrow('it has no output Options');
  });

  test('also deploys the stacks at the edge, unless stacks are named', async () => {
    write('relay.eu.json', { region: 'eu-central-1', webAcl: true });
    expect((await run('--stage', 'eu')).cdkCalls).toEqual([['deploy', '--context', 'stage=eu', '--all']]);
    for (const chosen of [
      ['--exclusively', 'relay-eu'],
      ['relay-eu-edge-eu-central-1'],
      ['--force', 'relay-eu'],
      ['relay-eu*'],
    ])
      expect((await run('--stage', 'eu', ...chosen)).cdkCalls).toEqual([
        ['deploy', '--context', 'stage=eu', ...chosen],
      ]);
    expect((await run('--stage', 'eu', '--require-approval', 'never')).cdkCalls).toEqual([
      ['deploy', '--context', 'stage=eu', '--all', '--require-approval', 'never'],
    ]);
  });

  describe('servers', () => {
    const subnets = ['subnet-01234567', 'subnet-01234568'];
    const inVpc = (...zones: string[]) => ({ vpc: { id: 'vpc-01234567', zones, subnets } });
    const deploy = async (region: string, service: object) => {
      write('relay.json', { region, compute: 'ecs', service });
      return run();
    };

    test.each([
      ['us-east-1', {}, /may choose the zone use1-az3.* \{"service":\{"zones":\["use1-az1","use1-az6"\]\}\}/],
      ['us-east-1', inVpc('us-east-1b', 'us-east-1a'), /in this account us-east-1a is use1-az3/],
      [
        'us-east-1',
        inVpc('us-east-1b', 'us-east-1f'),
        /has no zone us-east-1f; it has us-east-1a, us-east-1b/,
      ],
    ])('stops in %s with %j, because CloudFront could not reach them', async (region, service, says) => {
      const { exitCode, said, cdkCalls } = await deploy(region, service);
      expect(said).toMatch(says);
      expect([exitCode, cdkCalls]).toEqual([1, []]);
    });

    test.each([
      ['us-east-1', { zones: ['use1-az1', 'use1-az6'] }],
      ['us-east-1', inVpc('us-east-1b', 'us-east-1c')],
      ['us-east-1', inVpc('use1-az1', 'use1-az6')],
      ['eu-central-1', {}],
    ])('are deployed in %s with %j', async (region, service) => {
      expect((await deploy(region, service)).cdkCalls).toHaveLength(1);
    });

    test('keep the zones of the deployed ones', async () => {
      publishes('relay', { region: 'us-east-1', compute: 'ecs' });
      expect((await deploy('us-east-1', { tasksMin: 3 })).cdkCalls).toHaveLength(1);
    });
  });

  test('calls neither AWS nor CDK if the file of the stage is missing or invalid', async () => {
    const calls = aws.calls.length;
    await expect(run('--stage', 'nowhere')).rejects.toThrow(/relay\.nowhere\.json does not exist/);
    write('relay.bad.json', { domian: 'x' });
    await expect(run('--stage', 'bad')).rejects.toThrow(/domian: not an option; did you mean domain\?/);
    expect(aws.calls).toHaveLength(calls);
  });

  test.each([
    [['--stage'], /--stage requires a value/],
    [['--stage', 'a', '--stage', 'b'], /use --stage only once/],
    [['-c', 'stage=prod'], /use --stage instead of -c stage=/],
    [['--context=stage=prod'], /use --stage instead of -c stage=/],
    [['-cstage=prod'], /use --stage instead of -c stage=/],
    [['--accept-drop', '--all'], /--accept-drop requires a value/],
  ])('rejects %j', async (args, message) => {
    await expect(run(...args)).rejects.toThrow(message);
  });
});

describe('a stack that cannot be read', () => {
  let server: Server;
  let forbidden: string;

  beforeAll(async () => {
    server = createServer((_request, response) => {
      refuse(
        response,
        'AccessDenied',
        'User is not authorized to perform cloudformation:DescribeStacks',
        403,
      );
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    forbidden = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    write('relay.json', {});
  });

  test('because a permission is missing stops the deployment, which names the permission', async () => {
    await expect(runAt(forbidden, [])).rejects.toThrow(
      /stack relay in us-west-2: these credentials lack cloudformation:DescribeStacks/,
    );
  });

  test('because AWS does not answer stops the deployment', async () => {
    await new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    });
    await expect(runAt(forbidden, [])).rejects.toThrow(/CloudFormation does not respond \(ECONNREFUSED/);
  });
});
