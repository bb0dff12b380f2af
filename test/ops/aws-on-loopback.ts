import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { accountAnswer, healthyAccount, type AccountState } from './account-replies.ts';

/** Doubles on loopback of the AWS services that this tool uses besides DynamoDB. */
export interface AwsOnLoopback {
  endpoint: string;
  /** `SecureString /relay/relay/openai` or `secret relay/openai`, with the value. */
  stored: Map<string, string>;
  /** Headers of the last request to CloudFormation. */
  describing: { authorization?: string | undefined };
  /** Log lines, newest first; every search finds all of them. */
  logLines: object[];
  /** The recorded searches. */
  searches: Record<string, unknown>[];
  /** The state of the account. May change at any time. */
  account: AccountState;
  close(): Promise<void>;
}

type Call = Record<string, string & boolean>;
type Answer = [status: number, body: object | string, type?: string];

const refused = (kind: string): Answer => [400, { __type: kind, message: kind }];

/** @param baseUrl the output `BaseUrl` of the stack */
export async function startAws(baseUrl: string): Promise<AwsOnLoopback> {
  const stored = new Map<string, string>();
  const describing: AwsOnLoopback['describing'] = {};
  const searches: Record<string, unknown>[] = [];
  const logLines: object[] = [];
  const CallLogGroups = 'chatLogs9F822A8D responsesLogsC6F0CABC messagesLogsC9BF4176 backgroundLogs159A79C2'
    .split(' ')
    .map((name) => `relay-Functions${name}-AbCdEfGhIjKl`)
    .join(',');
  const outputs = { Other: 'https://other', BaseUrl: baseUrl, CallLogGroups };
  const account = { ...healthyAccount(), stack: { status: 'UPDATE_COMPLETE', outputs } };
  let asks = 0;
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
    'secretsmanager.GetSecretValue'({ SecretId = '' }) {
      const SecretString = stored.get(`secret ${SecretId}`);
      return SecretString === undefined ? refused('ResourceNotFoundException') : [200, { SecretString }];
    },
    'AmazonSSM.DeleteParameter': ({ Name = '' }) =>
      stored.delete(`SecureString ${Name}`) ? [200, {}] : refused('ParameterNotFound'),
    'secretsmanager.DeleteSecret': ({ SecretId = '' }) =>
      stored.delete(`secret ${SecretId}`) ? [200, {}] : refused('ResourceNotFoundException'),
    'Logs_20140328.DescribeLogGroups': ({ logGroupNamePrefix = '' }) => {
      const group = { logGroupName: logGroupNamePrefix, storedBytes: 48_000_000, retentionInDays: 30 };
      const creationTime = Date.now() - 400 * 86_400_000;
      return [
        200,
        {
          logGroups: [
            { ...group, creationTime },
            { ...group, logGroupName: 'relay-other' },
          ],
        },
      ];
    },
    'Logs_20140328.StartQuery'(call) {
      searches.push(call);
      return [200, { queryId: 'query' }];
    },
    // Running at first, like a real search.
    'Logs_20140328.GetQueryResults': () =>
      (asks += 1) % 2 === 1
        ? [200, { status: 'Running', results: [], statistics: {} }]
        : [
            200,
            {
              status: 'Complete',
              statistics: { bytesScanned: 12_345, recordsMatched: logLines.length, recordsScanned: 40 },
              results: logLines.map((line) => [
                { field: '@timestamp', value: '2026-11-10 16:00:00.000' },
                { field: '@message', value: JSON.stringify(line) },
                { field: '@ptr', value: 'CmEKJgoiMTIz' },
              ]),
            },
          ],
    'secretsmanager.PutSecretValue': ({ SecretId = '', SecretString = '' }) =>
      put(`secret ${SecretId}`, SecretString),
  };
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await text(request);
    const { authorization = '' } = request.headers;
    const target = String(request.headers['x-amz-target'] ?? '');
    const path = request.url ?? '/';
    if (target === '' && path === '/') describing.authorization = authorization;
    const action = actions[target];
    const asked = { method: request.method ?? '', path, target, authorization, body };
    const [status, answer, type] = action
      ? action(JSON.parse(body) as Call)
      : (accountAnswer(account, asked) ?? [404, 'nothing of this double']);
    response.writeHead(status, {
      'content-type': 'application/x-amz-json-1.1',
      ...(type !== undefined && { 'x-amzn-errortype': type }),
    });
    response.end(typeof answer === 'string' ? answer : JSON.stringify(answer));
  };
  const server = createServer((request, response) => void serve(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stored,
    describing,
    logLines,
    searches,
    account,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
