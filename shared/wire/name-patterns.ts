/** A key as clients send it. A text that does not match is refused before any table is read. */
export const isSecretKey = (text: string): boolean => /^sk-[\x21-\x7e]{1,200}$/.test(text);

/** The part of a key that lists and logs show: enough to recognise it, far too little to guess it. */
export const keyHint = (secretKey: string): string => `${secretKey.slice(0, 7)}...${secretKey.slice(-4)}`;

/** The name of a model: in requests, in rows, and as an upstream lists it. */
export const modelNamePattern = /^[A-Za-z0-9._:/@-]{1,128}$/;
