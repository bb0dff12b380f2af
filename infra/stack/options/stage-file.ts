/** Reads the file of a stage: `relay.<stage>.json`, or `relay.json` of the default stage. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { StageOptions } from './option-table.ts';
import { readOptions } from './read-options.ts';
import type { Stage } from './stage.ts';

/** @param folder the root of the repository. Throws an Error that names every problem of the file. */
export function readStageFile(folder: string, stage: Stage): StageOptions {
  const { file, stackName } = stage;
  const place = join(folder, file);
  if (!existsSync(place))
    throw new Error(
      `${file} does not exist: the options of stack ${stackName} are in that file, beside package.json. Without options it is {}`,
    );
  return readOptions(stage, parse(file, readFileSync(place, 'utf8')));
}

function parse(file: string, content: string): unknown {
  try {
    return JSON.parse(content);
  } catch (error) {
    throw new Error(`${file} is not JSON: ${(error as Error).message}`, { cause: error });
  }
}
