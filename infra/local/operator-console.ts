/**
 * Serves the operators' console for `npm start`. Its address and session survive a restart, so open tabs keep working. Loads the console on
 * the first request, so that the start stays fast. Must listen on loopback only.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { RequestListener, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { cloneFolder } from '../ops/session/running-stack.ts';
import { readOrCreateSecret } from './host/local-options.ts';
import { createServer } from '../../shared/adapters/system/node-http.ts';

const localStackName = 'relay';

interface ConsoleSettings {
  /** 0 takes a free port. */
  port: number;
  dataFolder: string | undefined;
  dynamodbEndpoint: string;
  log: (line: string) => void;
}

/** @returns the console's address, or a reason if the port is taken */
export async function startOperatorConsole(settings: ConsoleSettings): Promise<string> {
  const newSecret = randomBytes(32).toString('hex');
  // Without a data folder the address changes with each start.
  const secret = readOrCreateSecret(settings.dataFolder, 'console-secret', /^[0-9a-f]{64}$/, newSecret);
  let loading: Promise<RequestListener> | undefined;
  const server = createServer((request, response) => {
    loading ??= loadConsole(settings, { secret, port: readPort(server) });
    loading.then(
      (listener) => listener(request, response),
      (error: unknown) => {
        loading = undefined;
        settings.log(`[console] ${String(error)}`);
        response.writeHead(500).end();
      },
    );
  });
  server.listen(settings.port, '127.0.0.1');
  const failed = await once(server, 'listening').then(
    () => undefined,
    (error: NodeJS.ErrnoException) => error.code ?? error.message,
  );
  if (failed !== undefined) return `port ${settings.port} is not free (${failed}): set CONSOLE_PORT`;
  return `http://127.0.0.1:${readPort(server)}/enter?token=${secret}`;
}

const readPort = (server: Server): number => (server.address() as AddressInfo).port;

async function loadConsole(
  { dynamodbEndpoint: endpoint, log }: ConsoleSettings,
  { secret, port }: { secret: string; port: number },
): Promise<RequestListener> {
  const [{ createListener, Session }, { openSession }] = await Promise.all([
    import('../ops/console/serve.ts'),
    import('../ops/session/session.ts'),
  ]);
  const { ports } = await openSession({ stack: localStackName, endpoint, local: true }, process.env);
  const session = new Session(ports, { name: 'local', role: 'operator' }, secret);
  return createListener(ports, session, {
    port,
    where: `${localStackName}, ${path.basename(cloneFolder())} on this machine`,
    onFault: (error, at) => log(`[console] /${at}: ${error instanceof Error ? error.stack : String(error)}`),
  });
}
