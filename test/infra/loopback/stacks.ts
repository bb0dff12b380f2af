/**
 * CloudFormation's side of deployments through change sets: plans, checks, carries out, rolls back, deletes and imports.
 * All regions share one account of resources.
 */
import { createRequire } from 'node:module';
import type { Account } from './account.ts';
import { withoutConditions, type TemplateContext } from './conditions.ts';
import {
  carryOut,
  deleteAll,
  planChanges,
  type ChangePlan,
  type Deployment,
  type Failure,
} from './provision.ts';
import { resolveTemplate, type ResolvedStack } from './resolve-template.ts';
import { ExecutionRole } from './execution-role.ts';
import { textOf, type DeployedTemplate } from './template.ts';
import { answerXml, refuse, type QueryCall, type Xml } from './xml.ts';

export interface PlanOptions {
  region?: string;
  importExisting?: boolean;
  /** Values of the template's parameters. */
  parameters?: ReadonlyMap<string, string>;
  /** The execution role. Undefined if CloudFormation may call everything. */
  role?: ExecutionRole | undefined;
}

interface ChangeSet {
  id: string;
  name: string;
  template: DeployedTemplate;
  resolved: ResolvedStack;
  plan: ChangePlan;
  deployment: Deployment;
  /** Why the change set cannot be executed. */
  refusal?: string;
}

export interface LoopbackStack {
  id: string;
  name: string;
  region: string;
  status: string;
  reason?: string;
  createdAt: string;
  isProtected: boolean;
  /** The role of the last change set, with the policies of docs/deploy.md. */
  roleArn?: string;
  outputs: ResolvedStack['outputs'];
  /** Name and value. */
  parameters: [string, string][];
  /** Set once a change set was executed. */
  template?: DeployedTemplate;
  changeSet?: ChangeSet;
  /** Of the last change set or deletion. */
  failure?: Failure | undefined;
  events: StackEvent[];
}

interface StackEvent {
  id: string;
  physicalId: string;
  type: string;
  status: string;
  reason?: string;
  at: string;
}

const anywhere = '*';

/** The parser of aws-cdk-lib: the bootstrap template is not JSON. */
const yaml = createRequire(createRequire(import.meta.url).resolve('aws-cdk-lib/package.json'))('yaml') as {
  parse(text: string): unknown;
};

export class CloudFormationStacks {
  /** By region and name: `us-east-1 relay`; includes deleted stacks, by id. */
  readonly #stacks = new Map<string, LoopbackStack>();
  /** Injected failures of creating or changing a resource, by logical id. */
  broken: (id: string) => string | undefined = () => undefined;
  readonly #account: Account;
  readonly #readObject: (key: string) => string | undefined;
  #made = 0;

  constructor(account: Account, readObject: (key: string) => string | undefined = () => undefined) {
    this.#account = account;
    this.#readObject = readObject;
  }

  named(name: string, region = 'us-east-1'): LoopbackStack | undefined {
    const found = this.#stacks.get(`${region} ${name}`) ?? this.#stacks.get(`${anywhere} ${name}`);
    return found?.status === 'DELETE_COMPLETE' ? undefined : found;
  }

  /** @param changed is awaited after the account's resources may have changed */
  async answer(call: QueryCall, changed: () => Promise<void>): Promise<void> {
    const { action, parameters, response, region } = call;
    const given = parameters.get('StackName') ?? '';
    const name = given.startsWith('arn:') ? (given.split('/')[1] ?? '') : given;
    try {
      if (action === 'CreateChangeSet') return answerXml(call, this.#createChangeSet(name, call));
      if (action === 'GetTemplateSummary') return answerXml(call, { Parameters: [] });
      const stack = given.startsWith('arn:')
        ? this.#stacks.get(`${region} ${name}`)
        : this.named(name, region);
      if (stack === undefined)
        return refuse(response, 'ValidationError', `Stack with id ${name} does not exist`);
      if (action === 'DescribeChangeSet' && stack.changeSet === undefined)
        return refuse(response, 'ChangeSetNotFound', 'ChangeSet [cdk] does not exist', 404);
      const result = this.#stackAnswer(action, stack, parameters);
      if (result === undefined) return refuse(response, 'NotImplemented', `cloudformation ${action}`, 501);
      if (action === 'ExecuteChangeSet' || action === 'DeleteStack') await changed();
      return answerXml(call, result);
    } catch (error) {
      return refuse(response, 'ValidationError', (error as Error).message);
    }
  }

  forget(): void {
    this.#stacks.clear();
  }

  /** Adds a stack without resources, deployed by somebody else, which every region finds. */
  stands(name: string, outputs: Record<string, string>, status = 'UPDATE_COMPLETE'): void {
    const stack = this.#newStack(name, 'us-east-1');
    stack.status = status;
    stack.template = { Resources: {} };
    stack.outputs = Object.entries(outputs).map(([key, value]) => ({ key, value }));
    this.#stacks.set(`${anywhere} ${name}`, stack);
  }

  /** Plans a change set; tests of rules call this without a server. */
  plan(
    name: string,
    template: DeployedTemplate,
    {
      region = 'us-east-1',
      importExisting = false,
      parameters = new Map<string, string>(),
      role,
    }: PlanOptions = {},
  ): LoopbackStack {
    const stack = this.named(name, region) ?? this.#newStack(name, region);
    const place = { account: this.#account.id, region, stack: name, stackId: stack.id };
    const stackOutput: TemplateContext['stackOutput'] = ({ StackName, Region, OutputName }) =>
      this.named(StackName, Region)?.outputs.find(({ key }) => key === OutputName)?.value;
    const plain = withoutConditions(template, { parameters, region, stackOutput });
    const resolved = resolveTemplate(plain, place);
    const deployment: Deployment = {
      account: this.#account,
      stackId: stack.id,
      region,
      importExisting,
      broken: this.broken,
      role,
    };
    stack.parameters = Object.entries(plain.Parameters ?? {}).map(([key, { Default }]) => [
      key,
      textOf(Default ?? ''),
    ]);
    const plan = planChanges(resolved.resources, deployment);
    const refusal = this.#refusalOf({ template, resolved, plan, stack });
    stack.changeSet = {
      id: this.#arn('changeSet', region, 'cdk'),
      name: 'cdk',
      template,
      resolved,
      plan,
      deployment,
      ...(refusal !== undefined && { refusal }),
    };
    this.#stacks.set(`${region} ${name}`, stack);
    return stack;
  }

  /** Carries out the planned changes. */
  execute(stack: LoopbackStack): void {
    const { changeSet } = stack;
    if (changeSet === undefined) throw new Error('no change set');
    const isFirst = stack.template === undefined;
    const failure = carryOut(changeSet.plan, changeSet.deployment);
    stack.failure = failure;
    if (failure === undefined) {
      stack.template = changeSet.template;
      stack.outputs = changeSet.resolved.outputs;
      stack.status = isFirst ? 'CREATE_COMPLETE' : 'UPDATE_COMPLETE';
    } else {
      stack.status = isFirst ? 'ROLLBACK_COMPLETE' : 'UPDATE_ROLLBACK_COMPLETE';
    }
    this.#record(stack, failure);
    delete stack.changeSet;
  }

  #newStack(name: string, region: string): LoopbackStack {
    return {
      id: this.#arn('stack', region, name),
      name,
      region,
      status: 'REVIEW_IN_PROGRESS',
      createdAt: new Date().toISOString(),
      isProtected: false,
      outputs: [],
      parameters: [],
      events: [],
    };
  }

  #createChangeSet(name: string, { parameters, region }: QueryCall): Xml {
    const importExisting = parameters.get('ImportExistingResources') === 'true';
    const given = [...parameters.keys()].flatMap((key): [string, string][] => {
      const [, number] = /^Parameters\.member\.(\d+)\.ParameterKey$/.exec(key) ?? [];
      const value = parameters.get(`Parameters.member.${number}.ParameterValue`);
      return number === undefined || value === null ? [] : [[parameters.get(key) ?? '', value]];
    });
    const options = { region, importExisting, parameters: new Map(given), role: roleOf(parameters) };
    const stack = this.plan(name, this.#template(parameters), options);
    const { changeSet } = stack;
    if (changeSet === undefined) throw new Error('no change set');
    stack.roleArn = parameters.get('RoleARN') ?? '';
    changeSet.name = parameters.get('ChangeSetName') ?? changeSet.name;
    return { Id: changeSet.id, StackId: stack.id };
  }

  #refusalOf({
    template,
    resolved,
    plan,
    stack,
  }: Pick<ChangeSet, 'template' | 'resolved' | 'plan'> & { stack: LoopbackStack }): string | undefined {
    const count = Object.keys(template.Resources).length;
    if (count > resourcesMax)
      return `Template format error: Number of resources, ${count}, is greater than maximum allowed, ${resourcesMax}`;
    const bytes = JSON.stringify(template).length;
    if (bytes > templateMaxBytes)
      return `1 validation error detected: Template length ${bytes} is greater than ${templateMaxBytes}`;
    if (resolved.outputs.length > outputsMax)
      return `Template format error: Number of outputs, ${resolved.outputs.length}, is greater than maximum allowed, ${outputsMax}`;
    const exported = [...this.#stacks.values()].filter(
      (other) => other.id !== stack.id && other.region === stack.region && other.status !== 'DELETE_COMPLETE',
    );
    for (const { exportName } of resolved.outputs) {
      const owner = exported.find((other) =>
        other.outputs.some((output) => exportName !== undefined && output.exportName === exportName),
      );
      if (owner !== undefined)
        return `Export with name ${exportName} is already exported by stack ${owner.name}. Rename the export and then try again.`;
    }
    const sameOutputs =
      JSON.stringify(stack.template?.Outputs ?? {}) === JSON.stringify(template.Outputs ?? {});
    return plan.changes.length === 0 && sameOutputs && stack.template !== undefined ? noChanges : undefined;
  }

  #template(parameters: URLSearchParams): DeployedTemplate {
    const url = parameters.get('TemplateURL');
    const key = url === null ? undefined : new URL(url).pathname.split('/').at(-1);
    const text = parameters.get('TemplateBody') ?? this.#readObject(key ?? '');
    if (text === undefined) throw new Error(`S3 error: The specified key does not exist: ${key}`);
    return (text.startsWith('{') ? JSON.parse(text) : yaml.parse(text)) as DeployedTemplate;
  }

  #arn(kind: string, region: string, name: string): string {
    return `arn:aws:cloudformation:${region}:${this.#account.id}:${kind}/${name}/${uuid(++this.#made)}`;
  }

  #stackAnswer(action: string, stack: LoopbackStack, parameters: URLSearchParams): Xml | undefined {
    switch (action) {
      case 'DescribeStacks':
        return { Stacks: [describeStack(stack)] };
      case 'GetTemplate':
        return { TemplateBody: JSON.stringify(stack.template ?? {}) };
      case 'DescribeChangeSet':
        return describeChangeSet(stack);
      case 'ExecuteChangeSet':
        this.execute(stack);
        return {};
      case 'DescribeStackEvents':
      case 'DescribeEvents':
        return {
          StackEvents: stack.events.toReversed().map((event) => describeEvent(event, stack)),
          OperationEvents: [],
        };
      case 'DeleteChangeSet':
        delete stack.changeSet;
        return {};
      case 'ListStackResources':
        return { StackResourceSummaries: this.#account.ownedBy(stack.id).map(describeResource) };
      case 'UpdateTerminationProtection':
        stack.isProtected = parameters.get('EnableTerminationProtection') === 'true';
        return { StackId: stack.id };
      case 'DeleteStack':
        this.delete(stack, roleOf(parameters));
        return {};
      default:
        return undefined;
    }
  }

  delete(stack: LoopbackStack, role?: ExecutionRole): void {
    if (stack.isProtected)
      throw new Error(`Stack [${stack.name}] cannot be deleted while TerminationProtection is enabled`);
    const failures = deleteAll(this.#account.ownedBy(stack.id), this.#account, role);
    stack.status = failures.length === 0 ? 'DELETE_COMPLETE' : 'DELETE_FAILED';
    stack.failure = failures[0];
    stack.events = [];
    for (const failure of failures) this.#record(stack, failure);
    if (failures.length === 0) this.#record(stack, undefined);
  }

  #record(stack: LoopbackStack, failure: Failure | undefined): void {
    const at = new Date().toISOString();
    const own = { id: stack.name, physicalId: stack.id, type: 'AWS::CloudFormation::Stack', at };
    if (failure !== undefined) {
      stack.reason = `The following resource(s) failed: [${failure.id}].`;
      const status = `${/^[A-Z]+/.exec(stack.status)?.[0] === 'ROLLBACK' ? 'CREATE' : (stack.status.split('_')[0] ?? '')}_FAILED`;
      const { id, type, reason } = failure;
      stack.events.push({ id, physicalId: '', type, status, reason, at });
    } else {
      delete stack.reason;
    }
    stack.events.push({
      ...own,
      status: stack.status,
      ...(stack.reason !== undefined && { reason: stack.reason }),
    });
  }
}

/** A deployment names a role, which has the policies of the docs. Bootstrap names none. */
const roleOf = (parameters: URLSearchParams): ExecutionRole | undefined =>
  parameters.has('RoleARN') ? new ExecutionRole() : undefined;

/** The same in each run, so that generated names are stable. */
const uuid = (count: number): string => `00000000-0000-4000-8000-${String(count).padStart(12, '0')}`;

/** Quotas of CloudFormation: resources and outputs of a template, its length in S3. */
const resourcesMax = 500;
const outputsMax = 200;
const templateMaxBytes = 1_048_576;
const noChanges =
  "The submitted information didn't contain changes. Submit different information to create a change set.";

function describeStack(stack: LoopbackStack): Xml {
  return {
    StackId: stack.id,
    StackName: stack.name,
    CreationTime: stack.createdAt,
    StackStatus: stack.status,
    ...(stack.reason !== undefined && { StackStatusReason: stack.reason }),
    EnableTerminationProtection: String(stack.isProtected),
    Parameters: stack.parameters.map(([key, value]) => ({ ParameterKey: key, ParameterValue: value })),
    Outputs: stack.outputs.map(({ key, value }) => ({ OutputKey: key, OutputValue: value })),
  };
}

const actionNames = {
  Add: 'Add',
  Import: 'Import',
  Modify: 'Modify',
  Replace: 'Modify',
  Remove: 'Remove',
} as const;

function describeChangeSet(stack: LoopbackStack): Xml {
  const { changeSet } = stack;
  return {
    ChangeSetId: changeSet?.id ?? '',
    ChangeSetName: changeSet?.name ?? '',
    StackId: stack.id,
    StackName: stack.name,
    Status: changeSet?.refusal === undefined ? 'CREATE_COMPLETE' : 'FAILED',
    ...(changeSet?.refusal !== undefined && { StatusReason: changeSet.refusal }),
    ExecutionStatus: changeSet?.refusal === undefined ? 'AVAILABLE' : 'UNAVAILABLE',
    CreationTime: stack.createdAt,
    Changes: (changeSet?.plan.changes ?? []).map(({ action, resource }) => ({
      Type: 'Resource',
      ResourceChange: {
        Action: actionNames[action],
        LogicalResourceId: resource.id,
        ResourceType: resource.type,
        ...(action === 'Replace' && { Replacement: 'True' }),
      },
    })),
  };
}

const describeResource = (resource: { id: string; physicalId: string; type: string }): Xml => ({
  LogicalResourceId: resource.id,
  PhysicalResourceId: resource.physicalId,
  ResourceType: resource.type,
  ResourceStatus: 'CREATE_COMPLETE',
  LastUpdatedTimestamp: new Date(0).toISOString(),
});

const describeEvent = (event: StackEvent, stack: LoopbackStack): Xml => ({
  EventId: `${event.id}-${event.status}-${event.at}`,
  StackId: stack.id,
  StackName: stack.name,
  LogicalResourceId: event.id,
  PhysicalResourceId: event.physicalId,
  ResourceType: event.type,
  Timestamp: event.at,
  ResourceStatus: event.status,
  ...(event.reason !== undefined && { ResourceStatusReason: event.reason }),
});
