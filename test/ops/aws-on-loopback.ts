import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** What SSM, Secrets Manager and CloudFormation do for this tool, on loopback. */
export interface AwsOnLoopback {
  endpoint: string;
  /** `SecureString /relay/relay/openai` or `secret relay/openai`, with the value. */
  stored: Map<string, string>;
  /** Headers of the last request to CloudFormation. */
  describing: { authorization?: string | undefined };
  close(): Promise<void>;
}

type Call = Record<string, string & boolean>;
type Answer = [status: number, body: object | string];

const refused = (kind: string): Answer => [400, { __type: kind, message: kind }];

/** @param baseUrl the output `BaseUrl` of every stack */
export async function startAws(baseUrl: string): Promise<AwsOnLoopback> {
  const stored = new Map<string, string>();
  const describing: AwsOnLoopback['describing'] = {};
  const put = (name: string, value: string): Answer => {
    stored.set(name, value);
    return [200, {}];
  };
  const actions: Record<string, (call: Call) => Answer> = {
    'AmazonSSM.PutParameter'({ Name = '', Value = '', Type = '', Overwrite }) {
      const name = `${Type} ${Name}`;
      return stored.has(name) && !Overwrite ? refused('ParameterAlreadyExists') : put(name, Value);
    },
    'AmazonSSM.GetParameter'({ Name = '' }) {
      const Value = stored.get(`SecureString ${Name}`);
      return Value === undefined ? refused('ParameterNotFound') : [200, { Parameter: { Name, Value } }];
    },
    'secretsmanager.CreateSecret'({ Name = '', SecretString = '' }) {
      const name = `secret ${Name}`;
      return stored.has(name) ? refused('ResourceExistsException') : put(name, SecretString);
    },
    'secretsmanager.PutSecretValue': ({ SecretId = '', SecretString = '' }) =>
      put(`secret ${SecretId}`, SecretString),
  };
  const describe = (): Answer => [
    200,
    `<DescribeStacksResponse><Stacks><member><Outputs><member><Description>x</Description><OutputKey>Other</OutputKey>
    <OutputValue>https://other</OutputValue></member><member><OutputKey>BaseUrl</OutputKey><OutputValue>${baseUrl}</OutputValue>
    </member></Outputs></member></Stacks></DescribeStacksResponse>`,
  ];
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await text(request);
    const action = actions[String(request.headers['x-amz-target'])];
    if (!action) describing.authorization = request.headers.authorization;
    const [status, answer] = action ? action(JSON.parse(body) as Call) : describe();
    response.writeHead(status, { 'content-type': 'application/x-amz-json-1.1' });
    response.end(typeof answer === 'string' ? answer : JSON.stringify(answer));
  };
  const server = createServer((request, response) => void serve(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stored,
    describing,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
