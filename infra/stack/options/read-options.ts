/** Reads the options of a stage. Reports all problems of the file at once, each with its field. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod/mini';
import type { Node } from 'constructs';
import { checkOptions, findFieldProblems } from './option-problems.ts';
import { findOption, type OptionName, type StageOptions, optionNames } from './option-table.ts';

/**
 * @param content the JSON of the stage's file
 * @returns the options of the file, without defaults. Throws an Error that names all problems.
 */
export function readOptions({ file }: Stage, content: unknown): StageOptions {
  const parsed = z.safeParse(z.record(z.string(), z.unknown()), content);
  if (!parsed.success || Array.isArray(content))
    throw new Error(`${file}: expected one JSON object of options`);
  const { $schema: _, ...given } = parsed.data;
  const problems = Object.entries(given).flatMap(([name, value]) => findFieldProblems(name, value));
  // A field that has a problem of its own needs no further message about its combination with others.
  const found = problems.length === 0 ? checkOptions(given) : [];
  const all = [...problems, ...found].map(({ field, problem }) => `  ${field}: ${problem}`);
  if (all.length > 0)
    throw new Error(
      [`${file} has ${all.length === 1 ? 'a problem' : `${all.length} problems`}:`, ...all].join('\n'),
    );
  return given;
}

/** Returns the value of an option, or its default. Throws if the option has neither, which is a bug of the caller. */
export function valueOf<Name extends OptionName>(
  given: StageOptions,
  name: Name,
): NonNullable<StageOptions[Name]> {
  const value = given[name] ?? (findOption(name)?.default as StageOptions[Name]);
  if (value === undefined) throw new Error(`option ${name} has no default`);
  return value;
}

// Reads the file of a stage: `relay.<stage>.json`, or `relay.json` for the default stage.

/** @param folder the root of the repository. Throws an Error that names every problem of the file. */
export function readStageFile(folder: string, stage: Stage): StageOptions {
  const { file, stackName } = stage;
  const place = join(folder, file);
  if (!existsSync(place))
    throw new Error(
      `${file} does not exist: create it beside package.json with the options of stack ${stackName}, or with {} for the defaults`,
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

/** The name of a stage, and the names that follow from it. */

export interface Stage {
  /** Name of the stack and prefix of all resource names: `relay`, or `relay-<stage>`. */
  stackName: string;
  /** The file of its options, in the root of the repository. */
  file: string;
}

/** Excludes `edge-<region>`, the name of edge stacks, and `schema`, because relay.schema.json is no stage. */
const stagePattern = /^(?!schema$)(?!(?:.*-)?edge-)[a-z][a-z0-9-]{0,20}$/;

/** Throws an Error for an invalid name. @param stage the default stage if undefined */
export function resolveStage(stage: string | undefined): Stage {
  if (stage === undefined) return { stackName: 'relay', file: 'relay.json' };
  if (!stagePattern.test(stage))
    throw new Error(
      `stage: found ${JSON.stringify(stage)}, expected a lower-case name of at most 21 letters, digits, dashes; not schema, nor edge-...`,
    );
  return { stackName: `relay-${stage}`, file: `relay.${stage}.json` };
}

// The CDK context may name only the stage. The next deployment would lose any other option.

/** Reads `-c stage=...`. Throws an Error for an invalid name. */
export function readStage(node: Node): Stage {
  const found: unknown = node.tryGetContext('stage') ?? undefined;
  if (found !== undefined && typeof found !== 'string')
    throw new Error(`stage: found ${JSON.stringify(found)}, expected a name`);
  return resolveStage(found);
}

/** Throws an Error that names every option in the context (command line or cdk.json), and where it belongs. */
export function refuseOptionsInContext(node: Node, { file }: Stage): void {
  const found = optionNames.filter((name) => node.tryGetContext(name) !== undefined);
  if (found.length > 0)
    throw new Error(
      `options can't be CDK context (-c, or cdk.json), because the next deployment would lose them. Write them into ${file}: ${found.join(', ')}`,
    );
}
