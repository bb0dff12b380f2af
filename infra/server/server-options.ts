/** The variables that only the server has. `readEnvironment` reads those of every function. */
import { isIP } from 'node:net';
import { getHeapStatistics } from 'node:v8';
import { serverMegabytesMax } from '../../shared/adapters/entry/http-entry.ts';

export interface ServerOptions {
  host: string;
  /** 0 chooses a free port. */
  port: number;
  /** The maximum size of an unpacked body, in bytes. */
  requestBytesMax: number;
  /** The bytes that the bodies of all requests in flight may hold. */
  bodyBytesMax: number;
  /** Concurrent requests. */
  requestsMax: number;
  /** The time that running answers get after the signal to stop. */
  drainMs: number;
  /** The interval of the metric of requests in flight. */
  countMs: number | undefined;
}

const megabyte = 1024 * 1024;
/**
 * While a call runs, the heap holds its body twice, as read and as sent. A single character outside Latin-1 doubles the size of a
 * text.
 */
const heapShare = 5;

/** Throws an Error that names the variable and its valid values. */
export function readServerOptions(variables: NodeJS.ProcessEnv): ServerOptions {
  const { heap_size_limit: heapBytes } = getHeapStatistics();
  const bodies = Math.max(8, Math.floor(heapBytes / heapShare / megabyte));
  // One body of the largest size and one compressed body fit at once.
  const ofOne = { usual: Math.min(32, Math.floor(bodies / 2)), most: serverMegabytesMax };
  const one = readCount(variables, 'RELAY_REQUEST_MEGABYTES', ofOne);
  const ofAll = { usual: Math.max(bodies, 2 * one), least: 2 * one, most: 1_000_000 };
  return {
    ...readAddress(variables),
    requestBytesMax: one * megabyte,
    bodyBytesMax: readCount(variables, 'RELAY_BODY_MEGABYTES', ofAll) * megabyte,
    requestsMax: readCount(variables, 'RELAY_REQUESTS_MAX', { usual: 256, most: 100_000 }),
    drainMs: readCount(variables, 'RELAY_DRAIN_SECONDS', { usual: 20, least: 0, most: 900 }) * 1000,
    countMs:
      readCount(variables, 'RELAY_COUNT_SECONDS', { usual: 0, least: 0, most: 60 }) * 1000 || undefined,
  };
}

/**
 * Joins secrets that the platform passes one by one, as ECS does (`ORIGIN_SECRET_1`, `SEAL_KEY_2`), into the variables that hold
 * several. So a task definition holds no secret.
 */
export function collectNumberedSecrets(variables: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const listNumbered = (kind: RegExp): [number: string, value: string][] =>
    Object.entries(variables).flatMap(([name, value]) => {
      const number = kind.exec(name)?.[1];
      return number === undefined || !value ? [] : [[number, value]];
    });
  const origins = listNumbered(/^ORIGIN_SECRET_(\d+)$/).map(([, value]) => value);
  const seals = listNumbered(/^SEAL_KEY_(\d+)$/);
  return {
    ...(origins.length > 0 && { ORIGIN_SECRETS: origins.join(',') }),
    ...(seals.length > 0 && { SEAL_KEYS: JSON.stringify(Object.fromEntries(seals)) }),
    ...variables,
  };
}

function readAddress(variables: NodeJS.ProcessEnv): Pick<ServerOptions, 'host' | 'port'> {
  const text = variables['RELAY_LISTEN'] || '0.0.0.0:8080';
  const [, bracketed, plain, port] = /^(?:\[([\da-f:.]+)\]|([^:]+)):(\d{1,5})$/i.exec(text) ?? [];
  const host = bracketed ?? plain ?? '';
  if (port === undefined || Number(port) > 65_535 || (bracketed !== undefined && isIP(bracketed) !== 6))
    throw new Error(
      `RELAY_LISTEN is ${text}, expected an address and a port, such as 0.0.0.0:8080 or [::]:8080`,
    );
  return { host, port: Number(port) };
}

function readCount(
  variables: NodeJS.ProcessEnv,
  name: string,
  { usual, least = 1, most }: { usual: number; least?: number; most: number },
): number {
  const text = variables[name] || String(usual);
  const count = Number(text);
  if (!/^\d{1,9}$/.test(text) || count < least || count > most)
    throw new Error(`${name} is ${text}, expected a whole number from ${least} to ${most}`);
  return count;
}
