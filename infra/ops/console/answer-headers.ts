/** Headers of every answer of the console: what a browser may do with it, which is little. */

/**
 * Every answer has these. Nothing is loaded but from the console itself, nothing frames it, nothing is stored: a page
 * may show a new key.
 */
export const guardHeaders: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'self'; frame-ancestors 'none'",
  'x-frame-options': 'DENY',
  'x-content-type-options': 'nosniff',
  // With no-referrer, browsers send `Origin: null` with the console's own forms.
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), microphone=(), geolocation=(), payment=()',
  'cache-control': 'no-store',
};
