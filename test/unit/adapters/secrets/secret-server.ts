import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** The forms of an error in AWS's JSON 1.1 protocol: the services use all three. */
export type ErrorForm = 'type' | 'type with namespace' | 'header';

/** SSM and Secrets Manager on loopback, as far as reading one value requires. The SDK's clients are the real ones. */
export class SecretServer {
  readonly calls: { target: string; input: Record<string, unknown> }[] = [];
  value = 'sk-upstream';
  /** The stores' error instead of an answer. */
  failure: { status: number; type: string; form?: ErrorForm } | undefined;
  /** The number of answers. */
  answers = 0;
  #held: Promise<void> = Promise.resolve();
  readonly #server = createServer((request, response) => {
    response.once('close', () => (this.answers += 1));
    void text(request).then(async (body) => {
      const target = String(request.headers['x-amz-target']).split('.').at(-1) ?? '';
      this.calls.push({ target, input: JSON.parse(body) as Record<string, unknown> });
      await this.#held;
      response.setHeader('content-type', 'application/x-amz-json-1.1');
      if (this.failure) {
        const { status, type, form = 'type' } = this.failure;
        if (form === 'header') response.setHeader('x-amzn-errortype', `${type}:http://internal.amazon.com/`);
        const __type = form === 'type' ? type : `com.amazonaws.ssm#${type}`;
        response
          .writeHead(status)
          .end(JSON.stringify({ ...(form !== 'header' && { __type }), message: 'canary of the store' }));
        return;
      }
      response.end(
        JSON.stringify(
          target === 'GetParameter' ? { Parameter: { Value: this.value } } : { SecretString: this.value },
        ),
      );
    });
  });

  /** Points the SDK's clients to this server. */
  async start(): Promise<void> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
    const endpoint = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    process.env['AWS_ENDPOINT_URL_SSM'] = endpoint;
    process.env['AWS_ENDPOINT_URL_SECRETS_MANAGER'] = endpoint;
  }

  stop(): void {
    this.#server.close().closeAllConnections();
  }

  /** Holds all answers until the returned function is called. */
  holdAnswers(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#held = promise;
    return resolve;
  }

  reset(): void {
    this.calls.length = 0;
    this.answers = 0;
    this.value = 'sk-upstream';
    this.failure = undefined;
  }
}
