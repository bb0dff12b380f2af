import type { Readable } from 'node:stream';

/** The log goes to stderr, because stdout is reserved for the report of `npm start` when it is ready. */
export type Log = (line: string) => void;

export const logToStderr: Log = (line) => {
  process.stderr.write(`${line}\n`);
};

/** Logs the output of a process line by line. The last line may have no line break. */
export function logLines(stream: Readable, log: Log): void {
  let rest = '';
  stream
    .setEncoding('utf8')
    .on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) log(line);
    })
    .on('end', () => {
      if (rest !== '') log(rest);
    });
}
