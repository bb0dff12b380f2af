const namesMax = 5;

/** The first few of many names, for a sentence in a mark. */
export function namesShown(names: string[]): string {
  const shown = names.slice(0, namesMax).join(', ');
  return names.length > namesMax ? `${shown} and ${names.length - namesMax} more` : shown;
}
