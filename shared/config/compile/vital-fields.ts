/** Fields of request bodies that the relay writes for every call, whatever the upstream speaks. */
const vitalFields = ['messages', 'input', 'model', 'stream'];

/** Where a row's `params` break every call. Warnings, since rows that work all the same must go on working. */
export const vitalWarnings = ({ set, drop }: { set: object; drop: readonly string[] }): string[] => [
  ...vitalFields
    .filter((name) => Object.hasOwn(set, name))
    .map((name) => `params.set: sets ${name}, which every call needs as it is`),
  ...vitalFields
    .filter((name) => drop.includes(name))
    .map((name) => `params.drop: drops ${name}, which every call needs`),
];
