/**
 * Invokes another function of the stack by one signed request and never waits for its result.
 * https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
 */
import { StoreBusy, StoreUnavailable, tryMsMax } from '../../relay/ports/store-errors.ts';
import type { UpstreamReply } from '../../upstreams/exchange.ts';
import type { UpstreamTransport } from '../../relay/ports/host.ts';
import { resolveEndpoint } from './aws-calls.ts';

export interface FunctionInvokerDeps {
  transport: UpstreamTransport;
  region: string;
  functionName: string;
}

const lambda = {
  name: 'lambda',
  target: '',
  contentType: 'application/json',
  variable: 'AWS_ENDPOINT_URL_LAMBDA',
};

/** Throws StoreBusy if nothing was started, StoreUnavailable if that is unknown or a retry is useless. */
export const createFunctionInvoker =
  ({ transport, region, functionName }: FunctionInvokerDeps) =>
  async (event: object): Promise<void> => {
    const path = `/2015-03-31/functions/${encodeURIComponent(functionName)}/invocations`;
    const { status } = await sendEvent(transport, {
      url: new URL(path, resolveEndpoint(lambda, region)).href,
      headers: { 'content-type': lambda.contentType, 'x-amz-invocation-type': 'Event' },
      body: JSON.stringify(event),
      connectTimeoutMs: tryMsMax,
      awsScope: { service: lambda.name, region },
    });
    if (status === 429) throw new StoreBusy('events are throttled');
    if (status !== 202) throw new StoreUnavailable(`the event was answered with ${status}`);
  };

async function sendEvent(
  transport: UpstreamTransport,
  request: Parameters<UpstreamTransport['send']>[0],
): Promise<Pick<UpstreamReply, 'status'>> {
  try {
    const { status, body } = await transport.send(request, AbortSignal.timeout(tryMsMax));
    await body[Symbol.asyncIterator]().return?.();
    return { status };
  } catch (error) {
    throw new StoreUnavailable('the event got no reply', { cause: error });
  }
}
