/**
 * Declares what infra/pages builds. The build of functions and the test runner replace this file by the result.
 */

/** The script of the models page, its path, and the hash of the page's style. */
export const pageScript: string = '';
export const pageScriptPath: string = '';
export const pageStyleHash: string = '';

/** The account page, with the hashes of its script and style. */
export const accountPageHtml: string = '';
export const accountScriptHash: string = '';
export const accountStyleHash: string = '';
/** Removed from the account page where the models page is disabled. */
export const modelsLink: string = '';

/** docs/openapi.json without white space, and its strong entity tag. */
export const openapiDocument: string = '';
export const openapiTag: string = '';
