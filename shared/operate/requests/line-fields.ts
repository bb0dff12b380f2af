/** Reads fields of log lines. A line of another version may lack any of them. */

export type Fields = Readonly<Record<string, unknown>>;

/** Lines of other versions may lack any of it. */
export const text = (fields: Fields | undefined, name: string): string => {
  const value = fields?.[name];
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
};
export const listOf = (fields: Fields, name: string): Fields[] => {
  const value = fields[name];
  return Array.isArray(value)
    ? value.filter((each): each is Fields => typeof each === 'object' && each !== null)
    : [];
};
export const objectOf = (fields: Fields | undefined, name: string): Fields | undefined => {
  const value = fields?.[name];
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
};
export const words = (...parts: string[]): string => parts.filter((part) => part !== '').join(', ');
export const withWord = (before: string, value: string, after = ''): string =>
  value === '' ? '' : `${before}${value}${after}`;
