/** Memory of the processes of a soak. Measured only on Linux. */
import { readdirSync, readFileSync } from 'node:fs';

export interface MemorySample {
  atMs: number;
  /** Megabytes: the host of the functions, the functions together, the largest of them, the emulator, the soak itself. */
  runner: number;
  functions: number;
  largest: number;
  emulator: number;
  soak: number;
}

function megabytes(pid: number | undefined): number {
  if (pid === undefined) return 0;
  try {
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024;
  } catch {
    return 0;
  }
}

/** The emulator's process, by the port that it serves. */
function pidServing(port: string): number | undefined {
  try {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .find((pid) => {
        const words = commandOf(pid);
        return words[0]?.endsWith('dynoxide') === true && words.includes(port);
      });
  } catch {
    return undefined;
  }
}

function commandOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  } catch {
    return [];
  }
}

export class MemoryLog {
  readonly samples: MemorySample[] = [];
  readonly #runnerPid: number;
  readonly #emulatorPid: number | undefined;

  constructor(runnerPid: number, tablesEndpoint: string) {
    this.#runnerPid = runnerPid;
    this.#emulatorPid = pidServing(new URL(tablesEndpoint).port);
  }

  read(functions: Iterable<number>): void {
    const each = [...functions].map(megabytes);
    this.samples.push({
      atMs: Date.now(),
      runner: megabytes(this.#runnerPid),
      functions: each.reduce((sum, size) => sum + size, 0),
      largest: Math.max(0, ...each),
      emulator: megabytes(this.#emulatorPid),
      soak: megabytes(process.pid),
    });
  }
}
