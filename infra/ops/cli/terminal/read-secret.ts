/** Reads the key of an upstream: from a hidden line if a person uses the terminal, else all of standard input. */
import type { Terminal } from './terminal.ts';

export const readSecret = async ({ isAttended, askHidden, readInput }: Terminal): Promise<string> =>
  isAttended ? askHidden("The upstream's key?") : readInput("The upstream's key");
