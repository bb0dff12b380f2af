/** What the CDK context may say about a deployment: its stage, and nothing that the next deployment would forget. */
import type { Node } from 'constructs';
import { optionNames } from './option-table.ts';
import { stageNamed, type Stage } from './stage.ts';

/** Reads `-c stage=...`. Throws an Error for a value that is no name of a stage. */
export function stageIn(node: Node): Stage {
  const found: unknown = node.tryGetContext('stage') ?? undefined;
  if (found !== undefined && typeof found !== 'string')
    throw new Error(`stage: found ${JSON.stringify(found)}, wanted a name`);
  return stageNamed(found);
}

/** Throws an Error that names every option in the context, of the command line or of cdk.json, and where it belongs. */
export function refuseOptionsInContext(node: Node, { file }: Stage): void {
  const lines = optionNames.flatMap((name) => {
    const found: unknown = node.tryGetContext(name) ?? undefined;
    return found === undefined ? [] : [`  "${name}": ${JSON.stringify(valueMeant(found))}`];
  });
  if (lines.length === 0) return;
  throw new Error(
    [
      `options are no context (-c, or cdk.json), because the next deployment would forget them. Write into ${file}:`,
      lines.join(',\n'),
    ].join('\n'),
  );
}

/** The command line passes everything as text. */
function valueMeant(found: unknown): unknown {
  if (typeof found !== 'string' || !/^(true|false|\d+|[[{].*)$/s.test(found)) return found;
  try {
    return JSON.parse(found) as unknown;
  } catch {
    return found;
  }
}
