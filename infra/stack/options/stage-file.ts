/** The file of a stage, `relay.<stage>.json`, or `relay.json` of the default stage: its name and what it says. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readOptions } from './read-options.ts';
import type { StageOptions } from './option-table.ts';

export interface Stage {
  /** Name of the stack and prefix of all resource names: `relay`, or `relay-<stage>`. */
  stackName: string;
  /** The file's name, in the root of the repository. */
  file: string;
}

/** Not `edge-<region>`, which names the stacks beside a relay, nor `schema`, the file beside the files. */
const stagePattern = /^(?!schema$)(?!(?:.*-)?edge-)[a-z][a-z0-9-]{0,20}$/;

/** @param stage undefined: the default stage. Throws an Error when it cannot be the name of one. */
export function stageNamed(stage: string | undefined): Stage {
  if (stage === undefined) return { stackName: 'relay', file: 'relay.json' };
  if (!stagePattern.test(stage))
    throw new Error(
      `stage: found ${JSON.stringify(stage)}, wanted a lower-case name of at most 21 letters, digits, dashes; not schema, nor edge-...`,
    );
  return { stackName: `relay-${stage}`, file: `relay.${stage}.json` };
}

/** @param folder the root of the repository. Throws an Error that names every problem of the file. */
export function readStageFile(folder: string, { stackName, file }: Stage): StageOptions {
  const place = join(folder, file);
  if (!existsSync(place))
    throw new Error(
      `${file} does not exist: the options of stack ${stackName} are in that file, beside package.json. Without options it is {}`,
    );
  return readOptions(file, parse(file, readFileSync(place, 'utf8')));
}

function parse(file: string, content: string): unknown {
  try {
    return JSON.parse(content);
  } catch (error) {
    throw new Error(`${file} is not JSON: ${(error as Error).message}`, { cause: error });
  }
}
