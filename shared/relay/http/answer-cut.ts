/** The end of an answer that is not whole: the one thing that every host maps to a broken connection. */

/**
 * What the client got is not the whole answer, and the protocol has no way to say so: the host must break the connection,
 * never end it.
 */
export class AnswerCut extends Error {
  override readonly name = 'AnswerCut';
  constructor() {
    super('the connection was broken before the answer was whole');
  }
}
