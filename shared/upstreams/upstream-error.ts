/** What an upstream's answer was, when it was not an answer. Nothing of its text is kept for clients. */
export type UpstreamFault =
  /** The stream broke off without a finish reason and without `[DONE]`. */
  | 'cut'
  /** The answer had no content, no finish reason and no error. */
  | 'empty'
  /** A web page: a proxy or a login form stands where the API should be. */
  | 'html'
  /** Neither JSON nor server-sent events, or nothing in it could be read. */
  | 'junk'
  /** An error object where the answer should be, under a status 200. */
  | 'error_in_answer'
  /** A line, an event or the whole answer grew over its bound. */
  | 'too_large';

export class UpstreamError extends Error {
  override readonly name = 'UpstreamError';
  readonly fault: UpstreamFault;

  constructor(fault: UpstreamFault) {
    super(`upstream answer: ${fault}`);
    this.fault = fault;
  }
}
