/** Rows may have longer ones. */
const wantedCharactersMax = 64;

/** The known name that an unknown one was probably meant to be; undefined: none is near. */
export function findNearestName(name: string, names: readonly string[]): string | undefined {
  const wanted = name.slice(0, wantedCharactersMax).toLowerCase();
  const near = names.flatMap((each) => {
    const other = each.toLowerCase();
    const contained = wanted.length >= 4 && (other.includes(wanted) || wanted.includes(other));
    const distance = contained ? 1 : countEdits(wanted, other);
    return distance <= Math.max(2, Math.floor(other.length / 4)) ? [{ each, distance }] : [];
  });
  return near.toSorted((a, b) => a.distance - b.distance)[0]?.each;
}

/** How many letters have to be added, removed or replaced. */
function countEdits(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (const letter of from) {
    const above = row;
    row = [(above[0] ?? 0) + 1];
    for (const [column, other] of to.split('').entries())
      row.push(
        Math.min(
          (above[column + 1] ?? 0) + 1,
          (row[column] ?? 0) + 1,
          (above[column] ?? 0) + (letter === other ? 0 : 1),
        ),
      );
  }
  return row.at(-1) ?? 0;
}
