/** Compares the options file of a stage with the options that the deployed stack was made from. */
import { canonicalJson } from '../../wire/canonical-json.ts';
import type { DeployedStack } from '../aws-account.ts';
import { attention, doesNotApply, ok, type Finding } from './finding.ts';

type Options = Readonly<Record<string, unknown>>;

/** The committed options of a stage. */
export interface StageFile {
  /** `relay.json`, or `relay.<stage>.json`. */
  name: string;
  /** What deploys it. */
  deploy: string;
  /** Undefined: there is no such file here. */
  options: Options | undefined;
  /** Why it cannot be read. */
  problem?: string;
}

const check = 'options';

/** The output of the stack that holds the options it was deployed with, as JSON. */
export const optionsOutput = 'Options';

/** @returns undefined: the stack does not say */
export function deployedOptions(stack: DeployedStack | undefined): Options | undefined {
  const text = stack?.outputs.get(optionsOutput);
  if (text === undefined) return undefined;
  try {
    const options: unknown = JSON.parse(text);
    return typeof options === 'object' && options !== null ? { ...options } : undefined;
  } catch {
    return undefined;
  }
}

export function compareOptions(file: StageFile, stack: DeployedStack | undefined): Finding[] {
  const deployed = deployedOptions(stack);
  if (file.problem !== undefined) return [attention(check, `${file.name}: ${file.problem}`)];
  if (deployed === undefined)
    return [doesNotApply(check, `the stack does not say with which options it was deployed`)];
  const { options } = file;
  if (options === undefined)
    return [
      attention(
        check,
        `there is no ${file.name} here, and the next deployment would drop the deployed options`,
        {
          where: file.name,
          line: JSON.stringify(deployed),
        },
      ),
    ];
  const names = [...new Set([...Object.keys(deployed), ...Object.keys(options)])].toSorted();
  const findings = names.flatMap((name) =>
    differenceOf(name, { file, given: options[name], has: deployed[name] }),
  );
  return findings.length > 0 ? findings : [ok(check, `${file.name} is what is deployed`)];
}

function differenceOf(
  name: string,
  { file, given, has }: { file: StageFile; given: unknown; has: unknown },
): Finding[] {
  if (canonicalJson(given ?? null) === canonicalJson(has ?? null)) return [];
  if (given === undefined)
    return [
      attention(check, `${name} is deployed, but not in ${file.name}`, {
        where: file.name,
        line: `${JSON.stringify(name)}: ${JSON.stringify(has)}`,
      }),
    ];
  const found = has === undefined ? 'it is not deployed' : `deployed is ${JSON.stringify(has)}`;
  return [
    attention(check, `${name} is ${JSON.stringify(given)} in ${file.name}, ${found}`, {
      where: 'shell',
      line: file.deploy,
    }),
  ];
}
