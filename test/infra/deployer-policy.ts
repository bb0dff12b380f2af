/** The policies of the deploying role: they allow all that the template's resources need, and no access to customers' rows. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { App, Stack } from 'aws-cdk-lib';
import { beforeAll, describe, expect, it } from 'vitest';
import { withoutReport } from '../../infra/stack/create-app.ts';
import { Relay } from '../../infra/stack/relay.ts';
import { Account } from './loopback/account.ts';
import { withoutConditions } from './loopback/conditions.ts';
import {
  callsFor,
  ExecutionRole,
  policyPages,
  readPolicy,
  type PolicyDocument,
  type RoleCall,
} from './loopback/execution-role.ts';
import { resolveTemplate } from './loopback/resolve-template.ts';
import { CloudFormationStacks } from './loopback/stacks.ts';
import type { DeployedTemplate, Resource } from './loopback/template.ts';
import { optionSets } from './option-sets.ts';
import { sharedBundles, synthesize, synthesizeApp, withoutCopies } from './synthesize.ts';

const pages = policyPages.map(readPolicy);
const role = new ExecutionRole();

let resources: Resource[];
/** The distinct calls of a first deployment, a later one and a removal. */
let calls: RoleCall[];
/** The calls with which CloudFormation resolves a template. */
let lookups: RoleCall[];

const matchesOf = (text: string, pattern: RegExp): string[] =>
  [...text.matchAll(pattern)].map(([, found]) => String(found));

/** References by name. References to the template's own secrets use the permissions of their handler. */
const lookupsOf = (template: unknown): RoleCall[] => {
  const text = JSON.stringify(template);
  return [
    ...matchesOf(text, /\{\{resolve:secretsmanager:([^:{}"]+):SecretString/g).map((name) => ({
      action: 'secretsmanager:GetSecretValue',
      target: `arn:aws:secretsmanager:us-east-1:000000000000:secret:${name}-AbCdEf`,
    })),
    ...matchesOf(text, /"Fn::GetStackOutput":\{[^}]*"StackName":"([^"]+)"/g).map((name) => ({
      action: 'cloudformation:DescribeStacks',
      target: `arn:aws:cloudformation:us-east-1:000000000000:stack/${name}/0a1b2c3d`,
    })),
  ];
};

const once = (given: RoleCall[]): RoleCall[] => [
  ...new Map(given.map((call) => [`${call.action} on ${call.target}`, call])).values(),
];

beforeAll(() => {
  const synthesized = Object.values(optionSets).map((options) => synthesize(options));
  lookups = synthesized.flatMap(({ template, edge }) =>
    [template, ...Object.values(edge)].flatMap(lookupsOf),
  );
  resources = synthesized.flatMap(({ stackName, template, edge }) => {
    return Object.entries(Object.assign(edge, { [stackName]: template })).flatMap(([stack, each]) => {
      const context = { parameters: new Map(), region: 'us-east-1', stackOutput: () => 'an output' };
      const place = { account: '000000000000', region: 'us-east-1', stack, stackId: stack };
      return Array.from(resolveTemplate(withoutConditions(each, context), place).resources.values());
    });
  });
  calls = once(
    resources.flatMap((resource) => [...callsFor(resource, 'Add'), ...callsFor(resource, 'Modify')]),
  );
}, 240_000);

describe('docs/deployer-policy-*.json', () => {
  it('allow each call that CloudFormation makes for a resource, except on a log bucket of somebody else', () => {
    expect(calls.filter((call) => !role.allows(call))).toEqual(
      ['s3:GetBucketAcl', 's3:PutBucketAcl'].map((action) => ({
        action,
        target: 'arn:aws:s3:::company-edge-logs',
      })),
    );
  });

  it('allow the lookups that resolve the templates: secrets and outputs by name', () => {
    const found = new Set(lookups.map(({ action }) => action));
    expect(found).toEqual(new Set(['secretsmanager:GetSecretValue', 'cloudformation:DescribeStacks']));
    expect(lookups.filter((call) => !role.allows(call))).toEqual([]);
  });

  it('allow use of keys only through DynamoDB, Lambda, Secrets Manager and AWS Backup, and grants only to AWS', () => {
    const ofKeys = role.policy.Statement.filter(({ Action }) => String(Action).includes('kms:'));
    expect(ofKeys.length).toBeGreaterThan(0);
    for (const { Action, Condition } of ofKeys) {
      expect(Condition).toEqual({
        StringLike: { 'kms:ViaService': expect.anything() as unknown },
        ...(String(Action).includes('Grant') && { Bool: { 'kms:GrantIsForAWSResource': 'true' } }),
      });
      const { StringLike } = Condition as { StringLike: Record<string, string | string[]> };
      for (const service of [StringLike['kms:ViaService']].flat())
        expect(service).toMatch(/^(dynamodb|lambda|secretsmanager|backup)\.\*\.amazonaws\.com$/);
    }
  });

  it('contain only statements that a resource needs, and leave a third of a managed policy free', () => {
    const idle = role.policy.Statement.filter((statement) => {
      const alone = new ExecutionRole([{ Statement: [statement] }]);
      return ![...lookups, ...calls].some((call) => alone.allows(call));
    });
    // CloudFormation uses it to read the template's parameter.
    expect(idle.map(({ Sid }) => Sid)).toEqual(['VersionOfBootstrap']);
    for (const page of pages) expect(JSON.stringify(page).length).toBeLessThan(4_096);
  });

  it.each([
    ['dynamodb:GetItem', 'arn:aws:dynamodb:us-east-1:000000000000:table/relay-keys'],
    ['dynamodb:UpdateItem', 'arn:aws:dynamodb:us-east-1:000000000000:table/relay-quotas'],
    ['dynamodb:DeleteTable', 'arn:aws:dynamodb:us-east-1:000000000000:table/orders'],
    ['lambda:InvokeFunction', 'arn:aws:lambda:us-east-1:000000000000:function:relay-chat'],
    ['iam:PutRolePolicy', 'arn:aws:iam::000000000000:role/Admin'],
    ['iam:CreateUser', 'arn:aws:iam::000000000000:user/relay'],
    ['iam:CreatePolicyVersion', 'arn:aws:iam::000000000000:policy/Admin'],
    ['codedeploy:CreateDeployment', 'arn:aws:codedeploy:us-east-1:000000000000:deploymentgroup:Shop/Shop'],
    ['codedeploy:RegisterApplicationRevision', 'arn:aws:codedeploy:us-east-1:000000000000:application:Shop'],
    [
      'secretsmanager:GetSecretValue',
      'arn:aws:secretsmanager:us-east-1:000000000000:secret:relay/openai-AbCdEf',
    ],
    ['ssm:GetParameter', 'arn:aws:ssm:us-east-1:000000000000:parameter/relay/relay/openai'],
    ['s3:DeleteObject', 'arn:aws:s3:::relay-failures/x'],
    ['ecs:RunTask', 'arn:aws:ecs:us-east-1:000000000000:task-definition/relayServer:1'],
    ['ecs:ExecuteCommand', 'arn:aws:ecs:us-east-1:000000000000:task/relay/0a1b2c3d'],
    ['ecs:DeleteService', 'arn:aws:ecs:us-east-1:000000000000:service/shop/shop'],
    [
      'elasticloadbalancing:DeleteLoadBalancer',
      'arn:aws:elasticloadbalancing:us-east-1:000000000000:loadbalancer/app/shop/0a',
    ],
  ])('do not allow %s on %s', (action, target) => {
    expect(role.allows({ action, target })).toBe(false);
  });
});

describe('a deployment by a role that lacks one action', () => {
  let template: DeployedTemplate;
  /** The same with new code, and with a started rotation of both kinds of secrets. */
  let later: DeployedTemplate;

  beforeAll(() => {
    template = synthesize({ alarmEmail: 'ops@example.com' }).template;
    later = synthesize({ alarmEmail: 'ops@example.com', originSecrets: [1, 2], sealKeys: [1, 2] }).template;
  });

  const begun = () => {
    const stacks = new CloudFormationStacks(new Account());
    const deploy = (of: DeployedTemplate, by: ExecutionRole) => {
      const stack = stacks.plan('relay', of, { role: by });
      stacks.execute(stack);
      return stack;
    };
    return { stacks, deploy };
  };

  it('succeeds with the unmodified policies: creation, update with a rotation, deletion', () => {
    const { stacks, deploy } = begun();
    expect(deploy(template, role)).toMatchObject({ status: 'CREATE_COMPLETE', failure: undefined });
    const stack = deploy(later, role);
    expect(stack).toMatchObject({ status: 'UPDATE_COMPLETE', failure: undefined });
    stacks.delete(stack, role);
    expect(stack.status).toBe('DELETE_COMPLETE');
  });

  it('succeeds in an app of another team if the policies use the prefix of its stack and relay', () => {
    const folder = mkdtempSync(join(tmpdir(), 'relay-own-app-'));
    try {
      const app = new App({
        outdir: folder,
        builtinCloudFormationValidation: false,
        treeMetadata: false,
        context: { ...withoutReport, ...withoutCopies },
      });
      const stack = new Stack(app, 'acme-models', { env: { account: '000000000000', region: 'us-east-1' } });
      void new Relay(stack, 'Relay', {
        name: 'acme-customers',
        alarmEmail: 'ops@example.com',
        accessLog: true,
        bundlesFolder: sharedBundles(),
      });
      const own = synthesizeApp(app).getStackArtifact(stack.artifactId).template as DeployedTemplate;
      const deployBy = (by: ExecutionRole) => {
        const stacks = new CloudFormationStacks(new Account());
        const made = stacks.plan('acme-models', own, { role: by });
        stacks.execute(made);
        return made;
      };
      const renamed = pages.map((page) => {
        const text = JSON.stringify(page).replaceAll('relay*', 'acme*');
        return JSON.parse(text.replaceAll(/secret:(?=Origin|SealKeys)/g, 'secret:Relay')) as PolicyDocument;
      });
      expect(deployBy(role).failure).toBeDefined();
      expect(deployBy(new ExecutionRole(renamed))).toMatchObject({
        status: 'CREATE_COMPLETE',
        failure: undefined,
      });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('succeeds with servers in a new network, and back to functions, but is rolled back without ecs:CreateService', () => {
    const { stacks, deploy } = begun();
    const served = synthesize({ compute: 'ecs', service: { zones: ['use1-az1', 'use1-az6'] } }).template;
    const lacking = begun().deploy(served, new ExecutionRole(pages, 'ecs:CreateService'));
    expect(lacking).toMatchObject({ status: 'ROLLBACK_COMPLETE', failure: { type: 'AWS::ECS::Service' } });
    expect(deploy(served, role)).toMatchObject({ status: 'CREATE_COMPLETE', failure: undefined });
    // Back to functions, then deleted.
    const stack = deploy(template, role);
    expect(stack).toMatchObject({ status: 'UPDATE_COMPLETE', failure: undefined });
    stacks.delete(stack, role);
    expect(stack.status).toBe('DELETE_COMPLETE');
  });

  it.each(['codedeploy:RegisterApplicationRevision', 'codedeploy:CreateDeployment'])(
    'succeeds at first without %s, and is rolled back when an alias moves for the first time',
    (action) => {
      const { deploy } = begun();
      const lacking = new ExecutionRole(pages, action);
      expect(deploy(template, lacking).status).toBe('CREATE_COMPLETE');
      const { status, failure } = deploy(later, lacking);
      expect(status).toBe('UPDATE_ROLLBACK_COMPLETE');
      expect(failure).toMatchObject({ rule: 'role', type: 'AWS::Lambda::Alias' });
      expect(failure?.reason).toContain(`is not authorized to perform: ${action} on resource`);
    },
  );

  it('cannot be deleted without lambda:DeleteFunction', () => {
    const { stacks, deploy } = begun();
    const stack = deploy(template, role);
    stacks.delete(stack, new ExecutionRole(pages, 'lambda:DeleteFunction'));
    expect(stack).toMatchObject({ status: 'DELETE_FAILED', failure: { type: 'AWS::Lambda::Function' } });
  });

  it('fails for each missing action of the list, and names it', () => {
    const needing = new Map<string, Resource>();
    for (const resource of resources)
      for (const { action } of callsFor(resource, 'Modify')) needing.set(action, resource);
    expect(needing.size).toBeGreaterThan(150);
    const unnoticed = [...needing].filter(([action, resource]) => {
      const refusal = new ExecutionRole(pages, action).refusal(resource, 'Modify');
      return refusal?.includes(`: ${action} on`) !== true;
    });
    expect(unnoticed).toEqual([]);
  });
});
