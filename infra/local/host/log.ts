import type { Readable } from 'node:stream';

/** The log goes to stderr; stdout holds only what `npm start` reports once it is ready. */
export type Log = (line: string) => void;

export const logToStderr: Log = (line) => {
  process.stderr.write(`${line}\n`);
};

/** Logs what a process writes line by line; the last line may lack its end. */
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
