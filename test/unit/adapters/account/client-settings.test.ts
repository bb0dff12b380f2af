import { createServer, type RequestListener } from 'node:http';
import { GetAccountSettingsCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { describe, expect, test } from 'vitest';
import { composeClientSettings } from '../../../../shared/adapters/aws/client-settings.ts';
import { describeStack } from '../../../../shared/adapters/aws/deployed-stack.ts';
import { openSecret } from '../../../../shared/adapters/secrets/stored-secrets.ts';
import { listening } from '../../../support/listening.ts';

const access = { region: 'us-iso-east-1', credentials: { accessKeyId: 'id', secretAccessKey: 'secret' } };
const aws = async () => access;

const serve = (listener: RequestListener): Promise<string> => listening(createServer(listener));

describe('a client of an operator', () => {
  test('calls the endpoint of its service, or else the endpoint for all services', async () => {
    const asked: string[] = [];
    const record =
      (name: string): RequestListener =>
      (request, response) => {
        asked.push(`${name} ${request.url}`);
        response.end('{}');
      };
    const [lambda, all] = [await serve(record('lambda')), await serve(record('all'))];
    const variables = { AWS_ENDPOINT_URL_LAMBDA: lambda, AWS_ENDPOINT_URL: `${all}/base` };
    for (const environment of [variables, { ...variables, AWS_ENDPOINT_URL_LAMBDA: '' }])
      await new LambdaClient(composeClientSettings({ aws, environment }, 'LAMBDA')).send(
        new GetAccountSettingsCommand(),
      );
    expect(asked).toEqual(['lambda /2016-08-19/account-settings', 'all /base/2016-08-19/account-settings']);
  });

  test.each<[string, RequestListener, string]>([
    [
      'fails',
      (_request, response) => void response.writeHead(500).end('{"__type":"InternalServerError"}'),
      'InternalServerError',
    ],
    ['closes the connection', (_request, response) => void response.destroy(), 'ECONNRESET'],
    [
      'is busy',
      (_request, response) => void response.writeHead(429).end('{"__type":"ThrottlingException"}'),
      'ThrottlingException',
    ],
  ])('sends a write once when the service %s', async (_case, answer, name) => {
    let requests = 0;
    const endpoint = await serve((request, response) => {
      requests += 1;
      answer(request, response);
    });
    const caller = { aws, environment: { AWS_ENDPOINT_URL: endpoint } };
    await expect(openSecret('ssm:/relay/relay/key', caller).put('value', false)).rejects.toMatchObject(
      name === 'ECONNRESET' ? { code: name } : { name },
    );
    expect(requests).toBe(1);
  });

  test.each<[string, RequestListener]>([
    ['never answers', () => undefined],
    ['never ends its answer', (_request, response) => void response.write('{')],
  ])('stops waiting for a service that %s', async (_case, listener) => {
    const environment = { AWS_ENDPOINT_URL: await serve(listener) };
    const client = new LambdaClient(composeClientSettings({ aws, environment }, 'LAMBDA', 100));
    const reply = client.send(new GetAccountSettingsCommand());
    await expect(reply).rejects.toMatchObject({ name: 'TimeoutError' });
  });
});

test('a stack description returns outputs exactly as their owner wrote them', async () => {
  const [entities, marked] = ['{&quot;a&quot;:&quot;&lt;&amp;&#39;&gt;&quot;}', '<![CDATA[x]]>'];
  const member = (name: string, value: string): string =>
    `<member><OutputKey>${name}</OutputKey><OutputValue>${value}</OutputValue></member>`;
  const endpoint = await serve((_request, response) =>
    response.end(
      `<?xml version="1.0"?>\n<DescribeStacksResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/">
<DescribeStacksResult><Stacks><member><StackName>relay</StackName><StackStatus>UPDATE_COMPLETE</StackStatus>
<CreationTime>2010-07-27T22:28:28Z</CreationTime><EnableTerminationProtection>true</EnableTerminationProtection>
<Outputs>${member('Options', entities)}${member('BaseUrl', marked)}</Outputs></member></Stacks></DescribeStacksResult></DescribeStacksResponse>`,
    ),
  );
  const address = { stack: 'relay', aws, environment: { AWS_ENDPOINT_URL_CLOUDFORMATION: endpoint } };
  expect(await describeStack(address)).toEqual({
    status: 'UPDATE_COMPLETE',
    isProtected: true,
    outputs: new Map([
      ['Options', `{"a":"<&'>"}`],
      ['BaseUrl', 'x'],
    ]),
  });
});
