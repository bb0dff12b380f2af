/**
 * Pictures as data: URLs: those that the customer adds to a message, and those that came in an answer itself. Nothing else is
 * ever shown as a picture, nothing is loaded.
 */
import { element } from './elements.ts';
import { plural } from './words.ts';

const kinds = /^image\/(png|jpeg|webp|gif)$/;
/** Larger files are made smaller: a request may have 4 MB. */
const bytesMax = 700_000;
const sideMax = 1_568;

export const isPicture = ({ type }: File): boolean => kinds.test(type);

export async function dataUrlOf(file: File): Promise<string> {
  return file.size <= bytesMax ? readAsUrl(file) : smaller(file);
}

const readAsUrl = (file: Blob): Promise<string> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener('load', () => resolve(typeof reader.result === 'string' ? reader.result : ''));
    reader.addEventListener('error', () => reject(new Error('the file could not be read')));
    reader.readAsDataURL(file);
  });

async function smaller(file: File): Promise<string> {
  const bitmap = await createImageBitmap(file);
  const scale = Math.min(1, sideMax / Math.max(bitmap.width, bitmap.height));
  const canvas = document.createElement('canvas');
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  canvas.getContext('2d')?.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  bitmap.close();
  return canvas.toDataURL('image/jpeg', 0.85);
}

const shown = /^data:image\/(?:png|jpeg|webp|gif);base64,[A-Za-z0-9+/]+={0,2}$/;
const picturesMax = 8;
/** Of all pictures of an answer. */
const charactersMax = 24_000_000;
const namedCharacters = 200;

export class AnswerPictures {
  readonly #place: HTMLElement;
  #count = 0;
  #characters = 0;
  #left = 0;
  readonly #rest = element('p', { className: 'soft' });

  /** @param place is filled, and hidden while it is empty */
  constructor(place: HTMLElement) {
    this.#place = place;
    place.hidden = true;
    place.append(this.#rest);
  }

  add(parts: readonly unknown[]): void {
    for (const part of parts) {
      const url = urlOf(part);
      if (url === undefined) continue;
      this.#place.hidden = false;
      if (this.#count >= picturesMax || this.#characters + url.length > charactersMax) this.#left += 1;
      else this.#rest.before(this.#made(url));
    }
    if (this.#left > 0) this.#rest.textContent = `${plural(this.#left, 'more picture')} not shown.`;
  }

  #made(url: string): HTMLElement {
    this.#count += 1;
    if (!shown.test(url)) {
      const named = element('code', {}, [url.slice(0, namedCharacters)]);
      return element('p', { className: 'soft' }, ['Not loaded: ', named]);
    }
    this.#characters += url.length;
    const picture = element('img', {
      src: url,
      alt: `Picture ${this.#count} of the answer`,
      decoding: 'async',
    });
    picture.addEventListener('error', () => picture.replaceWith('A picture that cannot be shown'));
    return picture;
  }
}

function urlOf(part: unknown): string | undefined {
  const url = (part as { image_url?: { url?: unknown } } | null)?.image_url?.url;
  return typeof url === 'string' && url !== '' ? url : undefined;
}
