import { StartError } from '../host/start-error.ts';

type Condition = string | number | boolean | null | Record<string, unknown>;

/** True when the value passes. */
export type Filter = (value: unknown) => boolean;

/**
 * Compiles the event filter patterns (JSON texts) of a mapping. A value passes if one pattern matches or if
 * there are none. Throws StartError for an unknown operator.
 */
export function createFilter(patterns: string[]): Filter {
  if (patterns.length === 0) return () => true;
  const filters = patterns.map((pattern) => compile(JSON.parse(pattern) as Record<string, unknown>));
  return (value) => filters.some((filter) => filter(value));
}

function compile(pattern: Record<string, unknown>): Filter {
  const fields = Object.entries(pattern).map(([name, wanted]) => {
    const test = Array.isArray(wanted)
      ? anyOf(wanted as Condition[])
      : compile(wanted as Record<string, unknown>);
    return { name, test };
  });
  return (value) => {
    const holder = typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
    return fields.every(({ name, test }) => test(holder[name]));
  };
}

function anyOf(conditions: Condition[]): Filter {
  const tests = conditions.map((condition): Filter => {
    if (typeof condition !== 'object' || condition === null) return (value) => value === condition;
    const [operator, operand] = Object.entries(condition)[0] ?? ['', undefined];
    return operation(operator, operand);
  });
  return (value) => tests.some((test) => test(value));
}

function operation(operator: string, operand: unknown): Filter {
  switch (operator) {
    case 'exists':
      return (value) => (value !== undefined) === operand;
    case 'prefix':
      return (value) => typeof value === 'string' && value.startsWith(String(operand));
    case 'anything-but': {
      const unwanted = Array.isArray(operand) ? (operand as unknown[]) : [operand];
      return (value) => value !== undefined && !unwanted.includes(value);
    }
    default:
      throw new StartError(`unknown operator ${operator} in an event filter`);
  }
}
