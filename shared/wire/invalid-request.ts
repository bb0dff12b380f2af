/** The caller's request does not fit the contract: always a 400 that names where and what. */
export class InvalidRequest extends Error {
  override readonly name = 'InvalidRequest';
  readonly code: string;
  /** Path of the offending field, such as `messages[2].role`; null when it is the whole body. */
  readonly param: string | null;

  constructor(code: string, param: string | null, message: string) {
    super(message);
    this.code = code;
    this.param = param;
  }
}
