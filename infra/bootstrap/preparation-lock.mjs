/** Lock file that lets one process at a time install or build in a repository; the others wait. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { print } from './processes.mjs';
import { digest, read, root } from './repository.mjs';

const file = path.join(os.tmpdir(), `relay-bootstrap-${digest(root).slice(0, 16)}.lock`);

const release = () => fs.rmSync(file, { force: true });

export async function withLock(work) {
  for (let tries = 0; !takeLock(); tries += 1) {
    if (tries === 0) print('waiting for another run that installs or builds');
    await sleep(100);
  }
  process.once('exit', release);
  try {
    return await work();
  } finally {
    process.off('exit', release);
    release();
  }
}

/**
 * Returns false while another process holds the lock. Removes the lock of a dead process, so that the next
 * try succeeds.
 */
function takeLock() {
  try {
    fs.writeFileSync(file, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
  }
  const holder = Number(read(file));
  if (holder > 0 && !isAlive(holder)) fs.rmSync(file, { force: true });
  return false;
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}
