/** The option `objectives`: what the alarms hold a relay to. */
import type { Node } from 'constructs';
import { readObject, refuse } from './context.ts';

const option = 'objectives';

/** Below the least value the budget of an hour is larger than all that can fail, and the page would never come. */
const bounds = {
  availabilityPercent: { least: 94, below: 100 },
  firstContentPercent: { least: 94, below: 100 },
  firstContentSeconds: { least: 1, below: 601 },
} as const;

type Name = keyof typeof bounds;

const wanted =
  'an object of availabilityPercent and firstContentPercent (94 to below 100) and firstContentSeconds (1 to 600)';

/** Reads an object, or its JSON text from the CLI. */
export function readObjectives(node: Node): Partial<Record<Name, number>> {
  const found: unknown = node.tryGetContext(option) ?? undefined;
  const value = found === undefined ? {} : readObject(node, option);
  if (value === undefined) return refuse(option, found, wanted);
  for (const [name, number] of Object.entries(value)) {
    const bound = name in bounds ? bounds[name as Name] : undefined;
    if (!bound || typeof number !== 'number' || !(number >= bound.least && number < bound.below))
      return refuse(option, found, wanted);
  }
  return value;
}
