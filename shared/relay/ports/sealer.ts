/** Seals text so that a client can keep it without reading or changing it. */

export interface Sealer {
  /** One line of ASCII: see `sealPrefix`. */
  seal(text: string): string;
  /**
   * Opens a seal of any function of this stack. `unknown_key`: its key is gone or has another value. `damaged`: it was
   * changed, or it is not a seal.
   */
  open(sealed: string): { text: string } | 'unknown_key' | 'damaged';
}
