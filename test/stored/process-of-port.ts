import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** Finds the process with a connection from a port of this machine. Works only on Linux; elsewhere finds none. */
export function processOfPort(port: number, pids: number[]): number | undefined {
  const socket = socketOf(port);
  return socket === undefined ? undefined : pids.find((pid) => linksOf(pid).includes(socket));
}

function socketOf(port: number): string | undefined {
  const end = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const lines = ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((file) => textOf(file).split('\n').slice(1));
  const inode = lines
    .map((line) => line.trim().split(/\s+/))
    .find(([, local, , state]) => local?.endsWith(end) && state === '01')?.[9];
  return inode === undefined ? undefined : `socket:[${inode}]`;
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function linksOf(pid: number): string[] {
  try {
    const folder = `/proc/${pid}/fd`;
    return readdirSync(folder).map((name) => readlinkSync(`${folder}/${name}`));
  } catch {
    return []; // It has ended, or has closed a file meanwhile.
  }
}
