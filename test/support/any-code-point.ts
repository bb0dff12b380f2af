import * as fc from 'fast-check';

/**
 * The unit of texts in any script. Unlike the unit `binary` of fast-check and `fc.webUrl()`, it does not first map 1.1 million code
 * points back, which takes a second. It adds no `__proto__` and the like, so use it beside `fc.string()`.
 */
export const anyCodePoint = fc
  .oneof(fc.integer({ min: 0, max: 0xd7ff }), fc.integer({ min: 0xe000, max: 0x10ffff }))
  .map((code) => String.fromCodePoint(code));
