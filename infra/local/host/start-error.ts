/** The stack cannot start for a reason that its caller can fix: shown as one line, without a stack trace. */
export class StartError extends Error {
  override readonly name = 'StartError';
}
