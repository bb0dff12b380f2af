import { createServer, type RequestListener } from 'node:http';
import { describe, expect, test } from 'vitest';
import { callAws } from '../../../../shared/adapters/aws/aws-request.ts';
import { describeStack } from '../../../../shared/adapters/aws/deployed-stack.ts';
import { listening } from '../../../support/listening.ts';

const access = { region: 'us-iso-east-1', credentials: { accessKeyId: 'id', secretAccessKey: 'secret' } };
const call = { service: 'lambda', method: 'GET', path: '/2016-08-19/account-settings' } as const;

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  const address = await listening(server);
  return address;
}

const ask = (environment: NodeJS.ProcessEnv): Promise<string> =>
  callAws({ aws: () => Promise.resolve(access), environment }, call);

describe('the address of a reading', () => {
  test('is the variable of its service, then that of all', async () => {
    const own = await serve((request, response) => void response.end(`own ${request.url}`));
    const all = await serve((request, response) => void response.end(`all ${request.url}`));
    const both = { AWS_ENDPOINT_URL_LAMBDA: own, AWS_ENDPOINT_URL: `${all}/base` };
    expect(await ask(both)).toBe(`own ${call.path}`);
    expect(await ask({ AWS_ENDPOINT_URL: `${all}/base` })).toBe(`all /base${call.path}`);
    expect(await ask({ ...both, AWS_ENDPOINT_URL_LAMBDA: '' })).toBe(`all /base${call.path}`);
  });

  test('is found in the same way as for the tables: FIPS is refused, an empty variable is none', async () => {
    const environment = { AWS_USE_FIPS_ENDPOINT: 'true' };
    await expect(ask(environment)).rejects.toThrow('FIPS');
    const stack = { stack: 'relay', aws: async () => access };
    await expect(describeStack({ ...stack, environment })).rejects.toThrow('FIPS');
    const all = await serve((_request, response) => void response.end('<StackStatus>DONE</StackStatus>'));
    const described = { AWS_ENDPOINT_URL: all, AWS_ENDPOINT_URL_CLOUDFORMATION: '' };
    expect(await describeStack({ ...stack, environment: described })).toMatchObject({ status: 'DONE' });
  });
});

test('a reply without an end is read no further than it may be long', async () => {
  const closed = Promise.withResolvers<void>();
  const endless = await serve((_request, response) => {
    const more = (): void => {
      while (!response.destroyed && response.write('x'.repeat(1_000_000)));
    };
    response.once('close', closed.resolve).on('drain', more);
    more();
  });
  await expect(ask({ AWS_ENDPOINT_URL: endless })).rejects.toMatchObject({ name: 'ReplyTooLarge' });
  await closed.promise;
});
