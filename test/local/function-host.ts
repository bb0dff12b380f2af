import path from 'node:path';
import { createFrontDoor, distributionOf } from '../../infra/local/distribution.ts';
import { createFunctionUrl, type InvokeMode } from '../../infra/local/lambda/function-url.ts';
import { LocalFunction } from '../../infra/local/lambda/local-function.ts';
import { compileCache } from '../support/compile-cache.ts';

export interface HostOptions {
  fixture: 'streaming' | 'plain';
  handler?: string;
  mode?: InvokeMode;
  controlUrl?: string;
  timeoutMs?: number;
  environmentsMax?: number;
  readTimeoutMs?: number;
  methods?: string[];
}

export interface FunctionHost {
  url: string;
  log: string[];
  /** Process ids of all environments ever started, in order. */
  pids(): number[];
  close(): Promise<void>;
}

const everyMethod = ['GET', 'HEAD', 'OPTIONS', 'PUT', 'PATCH', 'POST', 'DELETE'];

/** One fixture function behind a Function URL and the distribution's emulator. */
export async function startHost(options: HostOptions): Promise<FunctionHost> {
  const log: string[] = [];
  const target = new LocalFunction(
    {
      name: options.fixture,
      arn: `arn:aws:lambda:us-east-1:000000000000:function:${options.fixture}`,
      folder: path.join(import.meta.dirname, 'fixtures', options.fixture),
      handler: options.handler ?? 'index.handler',
      timeoutMs: options.timeoutMs ?? 30_000,
      memoryMegabytes: 256,
      environment: {
        ...compileCache,
        PATH: process.env['PATH'] ?? '',
        CONTROL_URL: options.controlUrl ?? '',
      },
      environmentsMax: options.environmentsMax ?? 4,
    },
    (line) => log.push(line),
  );
  const domain = 'fixture.lambda-url.us-east-1.on.aws';
  const distribution = createFrontDoor();
  const behaviour = {
    matches: () => true,
    methods: new Set(options.methods ?? everyMethod),
    origin: {
      domain,
      pathPrefix: '',
      headers: { 'x-relay-origin': 'secret' },
      readTimeoutMs: options.readTimeoutMs ?? 60_000,
    },
  };
  const url = createFunctionUrl(target, options.mode ?? 'RESPONSE_STREAM', domain);
  distribution.open(distributionOf([behaviour], new Map([[domain, url]])));
  const port = await distribution.listen(0);
  return {
    url: `http://127.0.0.1:${port}`,
    log,
    pids: () => log.flatMap((line) => /^environment \S+ pid (\d+)$/.exec(line)?.[1] ?? []).map(Number),
    async close() {
      await distribution.close();
      await target.close();
    },
  };
}
