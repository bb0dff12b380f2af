/** Compares the options file of a stage with the options that the deployed stack was made from. */
import { canonicalJson } from '../../wire/canonical-json.ts';
import { attention, doesNotApply, ok, type Finding, type Setting } from './finding.ts';

/** In the form in which a stack publishes them: what is not a default; `memory.chat` for a field of a map. */
export type Options = Readonly<Record<string, unknown>>;

/** The committed options of a stage. */
export interface StageFile {
  /** `relay.json`, or `relay.<stage>.json`. */
  name: string;
  /** What deploys it. */
  deploy: string;
  /** Undefined: there is no such file here, or it has a problem. */
  options: Options | undefined;
  problem?: string;
}

const check = 'options';

/** @param deployed undefined: the stack does not say */
export function compareOptions(file: StageFile, deployed: Options | undefined): Finding[] {
  const { name, options, problem } = file;
  if (problem !== undefined) return [attention(check, problem)];
  if (deployed === undefined)
    return [doesNotApply(check, 'the stack does not say with which options it was deployed')];
  const names = [...new Set([...Object.keys(deployed), ...Object.keys(options ?? {})])].toSorted();
  if (options === undefined && names.length === 0)
    return [ok(check, `no ${name} here, and none is deployed`)];
  const findings = names.flatMap((option) =>
    differenceOf(option, { file, given: options?.[option], has: deployed[option] }),
  );
  return findings.length > 0 ? findings : [ok(check, `${name} is what is deployed`)];
}

function differenceOf(
  option: string,
  { file, given, has }: { file: StageFile; given: unknown; has: unknown },
): Finding[] {
  if (canonicalJson(given ?? null) === canonicalJson(has ?? null)) return [];
  const { name, deploy } = file;
  if (given === undefined)
    return [attention(check, `${option} is deployed, but not in ${name}`, lineOf(name, option, has))];
  const found = has === undefined ? 'not deployed' : `deployed is ${JSON.stringify(has)}`;
  const what = `${option} is ${JSON.stringify(given)} in ${name}, ${found}`;
  return [attention(check, what, { where: 'shell', line: deploy })];
}

/** The line of the file that sets an option. */
export function lineOf(name: string, option: string, value: unknown): Setting {
  const [first = option, ...fields] = option.split('.');
  const nested = fields.reduceRight((inner, field) => ({ [field]: inner }), value);
  return { where: name, line: `${JSON.stringify(first)}: ${JSON.stringify(nested)}` };
}
