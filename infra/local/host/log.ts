/** The log goes to stderr; stdout holds only what `npm start` reports once it is ready. */
export type Log = (line: string) => void;

export const logToStderr: Log = (line) => {
  process.stderr.write(`${line}\n`);
};

/** Splits what a process writes into lines, each one logged with its prefix; the last may lack its line end. */
export function logLines(log: Log, prefix: string): { push(text: string): void; end(): void } {
  let rest = '';
  return {
    push(text) {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) log(`${prefix} ${line}`);
    },
    end() {
      if (rest !== '') log(`${prefix} ${rest}`);
      rest = '';
    },
  };
}
