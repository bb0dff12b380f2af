/** The account's page: the same for everybody. It must never hold data of an account, since caches may keep it. */
import { accountPageHtml, accountScriptHash, accountStyleHash, modelsLink } from './account-page.ts';

const policy = [
  "default-src 'none'",
  `script-src '${accountScriptHash}'`,
  `style-src '${accountStyleHash}'`,
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  // No text can become markup, whatever the script does with it.
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

export const accountPage = ({ linksModels }: { linksModels: boolean }) => ({
  body: linksModels ? accountPageHtml : accountPageHtml.replace(modelsLink, ''),
  headers: {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': policy,
    'cross-origin-opener-policy': 'same-origin',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    vary: 'accept',
  },
});
