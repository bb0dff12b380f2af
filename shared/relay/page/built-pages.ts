/**
 * What is made of infra/pages when functions are built, and when tests run: both put it in the place of this file, which only
 * says what there is.
 */

/** Of the page of models: its script, the path where it is served, the hash of its style. */
export const pageScript: string = '';
export const pageScriptPath: string = '';
export const pageStyleHash: string = '';

/** The account's page, with the hashes of the script and the style in it. */
export const accountPageHtml: string = '';
export const accountScriptHash: string = '';
export const accountStyleHash: string = '';
/** Taken out of it where the page of models is off. */
export const modelsLink: string = '';
