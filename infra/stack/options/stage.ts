/** The name of a stage, and what is named after it. */

export interface Stage {
  /** Name of the stack and prefix of all resource names: `relay`, or `relay-<stage>`. */
  stackName: string;
  /** The file of its options, in the root of the repository. */
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
