/** Finds out whether the local stack's ports are free, before anything is installed, built or started for it. */
import net from 'node:net';
import { Failure } from './processes.mjs';

const usual = { PORT: 8787, DYNAMODB_PORT: 8000 };
/** How far to look for one that is free. */
const triesMax = 50;

/** What is no port number is left to the stack, which says what it wants. */
export async function refuseTakenPorts(variables) {
  const wanted = Object.entries(usual).filter(([name]) => name === 'PORT' || !variables.DYNAMODB_ENDPOINT);
  const asked = wanted.map(([name, port]) => [name, Number(variables[name] || port)]);
  const taken = [];
  for (const [name, port] of asked) if (isPort(port) && !(await isFree(port))) taken.push([name, port]);
  if (taken.length === 0) return;
  const promised = asked.map(([, port]) => port);
  const free = [];
  for (const [name, port] of taken) {
    promised.push(await nextFree(port, promised));
    free.push(`${name}=${promised.at(-1)}`);
  }
  const named = taken.map(([name, port]) => `${port} (${name})`).join(' and ');
  throw new Failure(
    `relay cannot start: port ${named} ${taken.length === 1 ? 'is' : 'are'} in use; try: ${free.join(' ')} npm start`,
  );
}

const isPort = (port) => Number.isInteger(port) && port > 0 && port < 65536;

async function nextFree(port, promised) {
  for (let next = port + 1; next < port + triesMax && isPort(next); next += 1)
    if (!promised.includes(next) && (await isFree(next))) return next;
  return 0;
}

const isFree = (port) =>
  new Promise((resolve) => {
    const server = net.createServer();
    // Any other error, such as a port that needs rights, is the stack's to report.
    server.once('error', ({ code }) => resolve(code !== 'EADDRINUSE'));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
