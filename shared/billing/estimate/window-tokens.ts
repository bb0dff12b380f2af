/** The largest window of models that read files: no call has more input that is not text. */
export const windowTokens = 1_050_000;
