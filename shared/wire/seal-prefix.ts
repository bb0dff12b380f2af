/** What every seal of the relay begins with. The whole form is `relay1.<number of the key>.<base64url>`. */
export const sealPrefix = 'relay1.';
