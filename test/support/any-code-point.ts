import * as fc from 'fast-check';

/**
 * A unit for random texts with all code points except surrogates. fast-check's unit `binary` and `fc.webUrl()` first map all 1.1 million code
 * points, which takes a second. Combine it with `fc.string()`, which also produces names such as `__proto__`.
 */
export const anyCodePoint = fc
  .oneof(fc.integer({ min: 0, max: 0xd7ff }), fc.integer({ min: 0xe000, max: 0x10ffff }))
  .map((code) => String.fromCodePoint(code));
