/** The arguments of `npm run deploy`: its own, and those that are CDK's. */

export interface DeployArguments {
  /** Undefined: the default stage. */
  stage: string | undefined;
  /** Names of options that may be dropped. */
  acceptedDrops: readonly string[];
  /** Of CDK's: whose credentials are used, and where. */
  profile: string | undefined;
  region: string | undefined;
  /** In the order given. */
  forCdk: readonly string[];
}

/** The values of an option that is given as `--name value` or `--name=value`, and the other arguments. */
function take(args: readonly string[], name: string): { values: string[]; others: string[] } {
  const values: string[] = [];
  const others: string[] = [];
  for (let index = 0; index < args.length; index += 1) {
    const arg = args[index] ?? '';
    if (arg === name) {
      index += 1;
      const value = args[index];
      if (value === undefined || value.startsWith('-')) throw new Error(`${name} needs a value`);
      values.push(value);
    } else if (arg.startsWith(`${name}=`)) values.push(arg.slice(name.length + 1));
    else others.push(arg);
  }
  return { values, others };
}

/** Throws an Error for the person who typed them. */
export function readDeployArguments(args: readonly string[]): DeployArguments {
  const stages = take(args, '--stage');
  const drops = take(stages.others, '--accept-drop');
  if (stages.values.length > 1) throw new Error('--stage is given twice');
  if (
    drops.others.some((arg, index) => /^(-c|--context)?=?stage=/.test(arg) && isContext(drops.others, index))
  )
    throw new Error('the stage is given as --stage, not as -c stage=...');
  return {
    stage: stages.values[0],
    acceptedDrops: drops.values,
    profile: take(drops.others, '--profile').values.at(-1),
    region: take(drops.others, '--region').values.at(-1),
    forCdk: drops.others,
  };
}

const isContext = (args: readonly string[], index: number): boolean =>
  /^(-c|--context)/.test(args[index] ?? '') || /^(-c|--context)$/.test(args[index - 1] ?? '');
