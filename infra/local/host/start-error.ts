/** A start error that the caller can fix. It is shown as one line without a stack trace. */
export class StartError extends Error {
  override readonly name = 'StartError';
}
