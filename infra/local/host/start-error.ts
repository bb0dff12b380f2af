/** The stack cannot start, for a reason that the person at the terminal can mend: shown as one line, without a stack. */
export class StartError extends Error {
  override readonly name = 'StartError';
}
