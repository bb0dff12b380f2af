/** CloudFormation's side of a deployment through a change set: everything succeeds at once. */
import { randomUUID } from 'node:crypto';
import { answerXml, refuse, type QueryCall, type Xml } from './loopback-xml.ts';

export interface DeployedTemplate {
  Resources: Record<string, { Type: string; Properties?: Record<string, unknown> }>;
  Outputs?: Record<string, { Value: unknown }>;
}

interface ChangeSet {
  id: string;
  name: string;
  template: DeployedTemplate;
}

export interface LoopbackStack {
  id: string;
  name: string;
  status: 'REVIEW_IN_PROGRESS' | 'CREATE_COMPLETE' | 'UPDATE_COMPLETE';
  createdAt: string;
  /** Set once a change set was executed. */
  template?: DeployedTemplate;
  changeSet?: ChangeSet;
}

export class CloudFormationStacks {
  readonly byName = new Map<string, LoopbackStack>();
  readonly #account: string;
  readonly #readObject: (key: string) => string | undefined;

  constructor(account: string, readObject: (key: string) => string | undefined) {
    this.#account = account;
    this.#readObject = readObject;
  }

  answer(call: QueryCall): void {
    const { action, parameters, response } = call;
    const given = parameters.get('StackName') ?? '';
    const name = given.startsWith('arn:') ? (given.split('/')[1] ?? '') : given;
    if (action === 'CreateChangeSet') return answerXml(call, this.#createChangeSet(name, parameters));
    if (action === 'GetTemplateSummary') return answerXml(call, { Parameters: [] });
    const stack = this.byName.get(name);
    if (stack === undefined)
      return refuse(response, 'ValidationError', `Stack with id ${name} does not exist`);
    const result = stackAnswer(action, stack);
    if (result === undefined) return refuse(response, 'NotImplemented', `cloudformation ${action}`, 501);
    return answerXml(call, result);
  }

  #createChangeSet(name: string, parameters: URLSearchParams): Xml {
    const stack: LoopbackStack = this.byName.get(name) ?? {
      id: this.#arn('stack', name),
      name,
      status: 'REVIEW_IN_PROGRESS',
      createdAt: new Date().toISOString(),
    };
    const changeSetName = parameters.get('ChangeSetName') ?? '';
    stack.changeSet = {
      id: this.#arn('changeSet', changeSetName),
      name: changeSetName,
      template: this.#template(parameters),
    };
    this.byName.set(name, stack);
    return { Id: stack.changeSet.id, StackId: stack.id };
  }

  #template(parameters: URLSearchParams): DeployedTemplate {
    const url = parameters.get('TemplateURL');
    const key = url === null ? undefined : new URL(url).pathname.split('/').at(-1);
    const text = parameters.get('TemplateBody') ?? this.#readObject(key ?? '') ?? '{"Resources":{}}';
    return JSON.parse(text) as DeployedTemplate;
  }

  #arn(kind: string, name: string): string {
    return `arn:aws:cloudformation:us-east-1:${this.#account}:${kind}/${name}/${randomUUID()}`;
  }
}

function stackAnswer(action: string, stack: LoopbackStack): Xml | undefined {
  switch (action) {
    case 'DescribeStacks':
      return { Stacks: [describeStack(stack)] };
    case 'GetTemplate':
      return { TemplateBody: JSON.stringify(stack.template ?? {}) };
    case 'DescribeChangeSet':
      return describeChangeSet(stack);
    case 'ExecuteChangeSet':
      execute(stack);
      return {};
    case 'DescribeStackEvents':
    case 'DescribeEvents':
      return { StackEvents: stackEvents(stack), OperationEvents: [] };
    case 'DeleteChangeSet':
      return {};
    case 'ListStackResources':
      return { StackResourceSummaries: [] };
    default:
      return undefined;
  }
}

function execute(stack: LoopbackStack): void {
  stack.status = stack.template === undefined ? 'CREATE_COMPLETE' : 'UPDATE_COMPLETE';
  if (stack.changeSet !== undefined) stack.template = stack.changeSet.template;
}

function describeStack(stack: LoopbackStack): Xml {
  const outputs = Object.entries(stack.template?.Outputs ?? {});
  return {
    StackId: stack.id,
    StackName: stack.name,
    CreationTime: stack.createdAt,
    StackStatus: stack.status,
    Outputs: outputs.map(([key, output]) => ({ OutputKey: key, OutputValue: textOf(output.Value) })),
  };
}

/** Intrinsics are not resolved. */
const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

function describeChangeSet(stack: LoopbackStack): Xml {
  const { id = '', name = '', template } = stack.changeSet ?? {};
  const resources = Object.entries(template?.Resources ?? {});
  return {
    ChangeSetId: id,
    ChangeSetName: name,
    StackId: stack.id,
    StackName: stack.name,
    Status: 'CREATE_COMPLETE',
    ExecutionStatus: 'AVAILABLE',
    CreationTime: stack.createdAt,
    Changes: resources.map(([logicalId, resource]) => ({
      Type: 'Resource',
      ResourceChange: { Action: 'Add', LogicalResourceId: logicalId, ResourceType: resource.Type },
    })),
  };
}

function stackEvents(stack: LoopbackStack): Xml {
  const resources = Object.entries(stack.template?.Resources ?? {}).map(([logicalId, { Type }]) => ({
    logicalId,
    physicalId: logicalId,
    type: Type,
  }));
  const own = { logicalId: stack.name, physicalId: stack.id, type: 'AWS::CloudFormation::Stack' };
  return [own, ...resources].map(({ logicalId, physicalId, type }) => ({
    EventId: `${logicalId}-${stack.changeSet?.name ?? ''}`,
    StackId: stack.id,
    StackName: stack.name,
    LogicalResourceId: logicalId,
    PhysicalResourceId: physicalId,
    ResourceType: type,
    Timestamp: new Date().toISOString(),
    ResourceStatus: stack.status,
  }));
}
