/**
 * The part of CloudWatch's metric math that the stack's alarms use, on single values: a value is a number, or undefined
 * where the metric has no data. Throws for everything else, so that no alarm is evaluated by a guess.
 */
export type Value = number | undefined;

/** A list of values for an aggregate function; values without data are omitted. */
type Result = Value | Value[];

/**
 * @param fillsUnknown whether FILL replaces a metric that was never written. AWS does not document that case, so
 * expressions must give the same result either way
 */
export function evaluate(expression: string, named: (id: string) => Value, fillsUnknown: boolean): Value {
  const tokens = expression.match(/[A-Za-z_]\w*|\d+(\.\d+)?|>=|<=|==|[-+*/()[\],<>]/g) ?? [];
  if (tokens.join('') !== expression.replaceAll(/\s/g, '')) throw new Error(`not known: ${expression}`);
  const parser = new Parser(tokens, named, fillsUnknown);
  const value = single(parser.either());
  parser.expectEnd();
  return value;
}

function single(result: Result): Value {
  if (Array.isArray(result)) throw new Error('a list where a value is wanted');
  return result;
}

const operators: Record<string, (a: number, b: number) => number> = {
  '+': (a, b) => a + b,
  '-': (a, b) => a - b,
  '*': (a, b) => a * b,
  '/': (a, b) => a / b,
  '>=': (a, b) => Number(a >= b),
  '<=': (a, b) => Number(a <= b),
  '>': (a, b) => Number(a > b),
  '<': (a, b) => Number(a < b),
  '==': (a, b) => Number(a === b),
  AND: (a, b) => Number(a !== 0 && b !== 0),
  OR: (a, b) => Number(a !== 0 || b !== 0),
};

/** From the loosest to the tightest. */
const levels = [['OR'], ['AND'], ['>=', '<=', '>', '<', '=='], ['+', '-'], ['*', '/']];

class Parser {
  readonly #tokens: string[];
  readonly #named: (id: string) => Value;
  readonly #fillsUnknown: boolean;

  constructor(tokens: string[], named: (id: string) => Value, fillsUnknown: boolean) {
    this.#tokens = [...tokens];
    this.#named = named;
    this.#fillsUnknown = fillsUnknown;
  }

  either(level = 0): Result {
    const here = levels[level];
    if (here === undefined) return this.#one();
    let left = this.either(level + 1);
    while (here.includes(this.#tokens[0] ?? '')) {
      const operator = operators[this.#tokens.shift() ?? ''];
      const [a, b] = [single(left), single(this.either(level + 1))];
      left = a === undefined || b === undefined || operator === undefined ? undefined : operator(a, b);
    }
    return left;
  }

  expectEnd(): void {
    if (this.#tokens.length > 0) throw new Error(`not understood: ${this.#tokens.join(' ')}`);
  }

  #one(): Result {
    const token = this.#tokens.shift() ?? '';
    if (/^\d/.test(token)) return Number(token);
    if (token === '(') return this.#closed(this.either(), ')');
    if (token === '[') {
      const values = this.#list().map(single);
      return this.#closed(values, ']');
    }
    if (this.#tokens[0] !== '(') return this.#named(token);
    this.#tokens.shift();
    return this.#closed(this.#called(token, this.#list()), ')');
  }

  #list(): Result[] {
    const values = [this.either()];
    while (this.#tokens[0] === ',') {
      this.#tokens.shift();
      values.push(this.either());
    }
    return values;
  }

  #called(name: string, values: Result[]): Value {
    const [first, ...others] = values;
    if (name === 'FILL') {
      const [filled] = others.map(single);
      return single(first) ?? (this.#fillsUnknown ? filled : undefined);
    }
    if (name === 'IF') {
      const [whenTrue, whenFalse] = others.map(single);
      const condition = single(first);
      return condition === undefined ? undefined : condition === 0 ? whenFalse : whenTrue;
    }
    if ((name !== 'SUM' && name !== 'MAX') || !Array.isArray(first)) throw new Error(`not known: ${name}`);
    const known = first.filter((value) => value !== undefined);
    if (known.length === 0) return undefined;
    return name === 'MAX' ? Math.max(...known) : known.reduce((sum, value) => sum + value, 0);
  }

  #closed<T>(value: T, by: string): T {
    if (this.#tokens.shift() !== by) throw new Error(`${by} is missing`);
    return value;
  }
}
