/**
 * The operators' tool in a separate process with a pipe as standard output. One process runs all commands in turn,
 * because starting takes longer than a command; a zero byte ends the output of each.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export interface PipedRun {
  code: number;
  output: string;
  errors: string;
}

export interface PipedCommand {
  words: string[];
  /** Environment of the tool. */
  environment: Record<string, string>;
  /** Environment of its process, where the SDK reads its own variables. */
  aws: Record<string, string>;
  input: string;
}

export interface PipedTool {
  run(command: PipedCommand): Promise<PipedRun>;
  stop(): Promise<void>;
}

const end = '\0';

export function startPipedTool(): PipedTool {
  const child = fork(fileURLToPath(new URL('piped-tool-process.ts', import.meta.url)), { silent: true });
  const [output, errors] = [child.stdout, child.stderr].map((stream) => {
    const kept = { text: '', reported: Promise.withResolvers<void>() };
    stream?.setEncoding('utf8').on('data', (text: string) => {
      kept.text += text;
      if (kept.text.endsWith(end)) kept.reported.resolve();
    });
    return kept;
  });
  if (!output || !errors) throw new Error('the process has no pipes');
  const taken = async (kept: typeof output): Promise<string> => {
    await kept.reported.promise;
    const { text } = kept;
    kept.text = '';
    kept.reported = Promise.withResolvers();
    return text.slice(0, -end.length);
  };
  return {
    async run(command) {
      const ended = once(child, 'message') as Promise<[{ code: number }]>;
      child.send(command);
      const [[{ code }], printed, remarked] = await Promise.all([ended, taken(output), taken(errors)]);
      return { code, output: printed, errors: remarked };
    },
    async stop() {
      const exited = once(child, 'exit');
      child.disconnect();
      await exited;
    },
  };
}
