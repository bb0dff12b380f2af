/** Groups models by what their names begin with. A rule, so that no list of vendors has to be kept. */

export interface Family {
  /** Empty: all models together. */
  name: string;
  models: string[];
}

/** So many fit on a screen. */
const ungroupedMax = 12;
const others = 'others';

/**
 * The part before a slash (`vendor/model`), else the letters at the beginning (`qwen2.5-max`). A name of its own is put
 * among the others. Few models are one family, in the order of the channels.
 */
export function familiesOf(models: readonly string[]): Family[] {
  if (models.length <= ungroupedMax) return [{ name: '', models: [...models] }];
  const byFamily = Map.groupBy(models, familyOf);
  const families = [...byFamily].filter(([, members]) => members.length > 1);
  const single = [...byFamily.values()].filter((members) => members.length === 1).flat();
  if (families.length === 0 || (families.length === 1 && single.length === 0))
    return [{ name: '', models: sorted(models) }];
  return [
    ...families
      .toSorted(([a], [b]) => inOrder(a, b))
      .map(([name, members]) => ({ name, models: sorted(members) })),
    ...(single.length > 0 ? [{ name: others, models: sorted(single) }] : []),
  ];
}

const familyOf = (model: string): string =>
  (/^([^/]+)\//.exec(model)?.[1] ?? /^[a-z]+/i.exec(model)?.[0] ?? others).toLowerCase();

const sorted = (models: readonly string[]): string[] => models.toSorted(inOrder);

const inOrder = (a: string, b: string): number => a.localeCompare(b, 'en', { numeric: true });
