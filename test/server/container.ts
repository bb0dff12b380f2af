/** Builds and runs the server's Dockerfile without Docker: its files in a folder, and its commands as processes of its user. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, copyFileSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';

const context = join(import.meta.dirname, '..', '..', 'dist', 'server');

/** Instructions by name. An unsupported instruction fails, so that none is skipped. */
function readDockerfile(text: string) {
  const lines = text.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('#'));
  const all = lines.map((line): [string, string] => [
    line.split(' ')[0] ?? '',
    line.slice(line.indexOf(' ') + 1),
  ]);
  const known = new Set(['ARG', 'FROM', 'ENV', 'COPY', 'USER', 'EXPOSE', 'HEALTHCHECK', 'ENTRYPOINT']);
  const strange = all.find(([name]) => !known.has(name));
  if (strange) throw new Error(`the double of an image does not know ${strange[0]}`);
  const only = (name: string): string => {
    const found = all.filter(([each]) => each === name).map(([, value]) => value);
    if (found.length !== 1) throw new Error(`${name}: ${found.length} times`);
    return found[0] ?? '';
  };
  const words = (value: string): string[] => JSON.parse(value.slice(value.indexOf('['))) as string[];
  const [uid = 0, gid = 0] = only('USER').split(':').map(Number);
  const [source = '', target = ''] = only('COPY').split(' ');
  return {
    bases: all.filter(([name]) => name === 'FROM').map(([, value]) => value),
    argument: only('ARG'),
    variables: Object.fromEntries(
      only('ENV')
        .split(' ')
        .map((each) => each.split(/=(.*)/s).slice(0, 2)),
    ) as Record<string, string>,
    source,
    target,
    uid,
    gid,
    port: Number(only('EXPOSE')),
    health: words(only('HEALTHCHECK')),
    entrypoint: words(only('ENTRYPOINT')),
  };
}

export const dockerfile = readDockerfile(readFileSync(join(context, 'Dockerfile'), 'utf8'));

export interface Container {
  origin: string;
  /** Lines of its log. */
  lines: string[];
  /** Waits for a line with this text. */
  line(text: string): Promise<string>;
  /** The exit code of its HEALTHCHECK. */
  health(): Promise<number>;
  /** Sends SIGTERM. */
  end(): void;
  /** Its exit code, once it has one. */
  ended: Promise<number | null>;
  remove(): void;
}

/** Starts it with only these environment variables, a read-only root, and no other folder. */
export async function startContainer(variables: Record<string, string>): Promise<Container> {
  const { variables: ownVariables, source, target, uid, gid, entrypoint, health } = dockerfile;
  const root = mkdtempSync(join(tmpdir(), 'relay-image-'));
  mkdirSync(join(root, target), { recursive: true });
  for (const file of globSync(source, { cwd: context })) {
    copyFileSync(join(context, file), join(root, target, basename(file)));
    chmodSync(join(root, target, basename(file)), 0o444);
  }
  for (const folder of [join(root, target), root]) chmodSync(folder, 0o555);
  const port = await freePort();
  const env = {
    ...ownVariables,
    HOME: root,
    TMPDIR: root,
    ...variables,
    RELAY_LISTEN: `127.0.0.1:${port}`,
  };
  // Only root can switch users; without root, the folder is read-only anyway.
  const user = process.getuid?.() === 0 ? { uid, gid } : {};
  const run = ([command = '', ...parameters]: string[]): ChildProcess => {
    if (command !== 'node') throw new Error(`the image has no ${command}`);
    const inRoot = parameters.map((each) => (each.startsWith('/') ? join(root, each) : each));
    return spawn(process.execPath, inRoot, { ...user, cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
  };
  const child = run(entrypoint);
  const lines: string[] = [];
  let written = Promise.withResolvers<void>();
  for (const stream of [child.stdout, child.stderr])
    if (stream)
      createInterface(stream).on('line', (line) => {
        lines.push(line);
        written.resolve();
        written = Promise.withResolvers();
      });
  const ended = once(child, 'exit').then(([code]) => {
    written.reject(new Error(`the container ended (${code}):\n${lines.join('\n')}`));
    written.promise.catch(() => undefined);
    return code as number | null;
  });
  const line = async (text: string): Promise<string> => {
    for (;;) {
      const found = lines.find((each) => each.includes(text));
      if (found !== undefined) return found;
      await written.promise;
    }
  };
  await line('server_started');
  return {
    origin: `http://127.0.0.1:${port}`,
    lines,
    line,
    health: async () => {
      const [code] = await once(run(health), 'exit');
      return code as number;
    },
    end: () => void child.kill('SIGTERM'),
    ended,
    remove() {
      child.kill('SIGKILL');
      chmodSync(root, 0o755);
      chmodSync(join(root, target), 0o755);
      rmSync(root, { recursive: true });
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
