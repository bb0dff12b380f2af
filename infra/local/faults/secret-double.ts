/** SSM's and Secrets Manager's reads of one value, over HTTP, with a count for each secret. */
import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { closeServer, listenOnLoopback } from '../host/free-port.ts';
import { callOf } from './faulted-call.ts';

export interface SecretDouble {
  /** For `AWS_ENDPOINT_URL_SSM`, `AWS_ENDPOINT_URL_SECRETS_MANAGER`, and a fault proxy's `upstream`. */
  endpoint: string;
  /** By name, as a reference has it after `ssm:` or `secretsmanager:`. May be changed at any time. */
  values: Map<string, string>;
  /** Reads that arrived, by name. */
  reads: Map<string, number>;
  close(): Promise<void>;
}

export async function startSecretDouble(values: Record<string, string>): Promise<SecretDouble> {
  const held = new Map(Object.entries(values));
  const reads = new Map<string, number>();
  const server = createServer((request, response) => {
    void buffer(request).then((bytes) => {
      const { service, tables, contentType } = callOf(request.headers, bytes);
      const name = tables[0] ?? '';
      reads.set(name, (reads.get(name) ?? 0) + 1);
      const value = held.get(name);
      const isParameter = service === 'ssm';
      response.writeHead(value === undefined ? 400 : 200, { 'content-type': contentType });
      if (value === undefined)
        response.end(
          JSON.stringify({ __type: isParameter ? 'ParameterNotFound' : 'ResourceNotFoundException' }),
        );
      else
        response.end(
          JSON.stringify(isParameter ? { Parameter: { Name: name, Value: value } } : { SecretString: value }),
        );
    });
  });
  const port = await listenOnLoopback(server, 0);
  return {
    endpoint: `http://127.0.0.1:${port}`,
    values: held,
    reads,
    close: () => closeServer(server),
  };
}
