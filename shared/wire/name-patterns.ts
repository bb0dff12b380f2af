/** Whether a text has the form of a key. Other texts are refused before any table is read. */
export const isSecretKey = (text: string): boolean => /^sk-[\x21-\x7e]{1,200}$/.test(text);

/** The part of a key that lists and logs show: enough to recognise the key, too little to guess it. */
export const keyHint = (secretKey: string): string => `${secretKey.slice(0, 7)}...${secretKey.slice(-4)}`;

/** A model name in requests, in rows and in upstreams' lists of models. */
export const modelNamePattern = /^[A-Za-z0-9._:/@-]{1,128}$/;

/** The longest name of a tool, of a namespace and of an author: OpenAI's limit. */
export const calledNameMax = 64;
