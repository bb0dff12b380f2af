/** A stream that stores the output of a command, for tests that read it or answer its questions. */
import { Writable } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';

export class KeptOutput extends Writable {
  text = '';
  readonly #onText: (text: string) => void;

  constructor(onText: (text: string) => void = () => undefined) {
    super();
    this.#onText = onText;
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString();
    done();
    // Without control sequences for moving the cursor and erasing text.
    this.#onText(stripVTControlCharacters(this.text));
  }
}
