/** Tries a model: streams its answer, and says what it cost. */
import type { ModelList, UsageEntry, UsageList } from '../../../shared/wire/public-api.ts';
import { chunksOf, type TurnUsage, dataUrlOf, isPicture, PlaygroundTurn } from './turn.ts';
import { areaById, button, buttonById, byId, element, inputById, onSubmit, say } from './elements.ts';
import { t } from './language.ts';
import { chargeOf, usagePath } from './ledger.ts';
import { CallFailed, wordsOf, type RelayClient } from './relay-client.ts';

const picturesMax = 6;
/** The ledger has a call a moment after its end. */
const costAfterMs = [400, 800, 1_600, 3_200, 6_400];
/** Of one that was stopped, when the model has come to its end all the same. */
const stoppedCostAfterMs = [...costAfterMs, ...Array.from({ length: 20 }, () => 15_000)];
/** A call that is stopped before its first content has told no id: it is found by this tag. */
const markTag = 'playground';

export class Playground {
  readonly #client: RelayClient;
  readonly #spent: () => void;
  #messages: object[] = [];
  #pictures: string[] = [];
  #running: AbortController | undefined;

  /** @param spent to be called when a call has been charged */
  constructor(client: RelayClient, spent: () => void) {
    this.#client = client;
    this.#spent = spent;
    const here = { signal: client.ended };
    const [prompt, files] = [areaById('prompt'), inputById('files')];
    onSubmit('ask', () => void this.#send(), here);
    const pressed = (event: KeyboardEvent): void => {
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      void this.#send();
    };
    prompt.addEventListener('keydown', pressed, here);
    prompt.addEventListener('paste', (event) => void this.#addFiles(event.clipboardData?.files), here);
    const chosen = () => void this.#addFiles(files.files).then(() => (files.value = ''));
    files.addEventListener('change', chosen, here);
    // The list offers what fits the text that is there, which is one model alone.
    const model = inputById('model');
    model.addEventListener('focus', () => model.select(), here);
    byId('stop').addEventListener('click', () => this.#running?.abort(), here);
    byId('clear').addEventListener('click', () => this.#clear(), here);
    client.ended.addEventListener('abort', () => this.#clear());
  }

  async show(allowed: string[] | null): Promise<void> {
    try {
      const { data } = await this.#client.json<ModelList>('/v1/models');
      const names = data.map(({ id }) => id).filter((id) => allowed === null || allowed.includes(id));
      byId('names').replaceChildren(...names.map((value) => element('option', { value })));
      const model = inputById('model');
      const propose = (): void => {
        if (model.value === '') model.value = names[0] ?? '';
      };
      // Whoever is in the field is about to write: that would stand behind what is proposed.
      if (document.activeElement === model)
        model.addEventListener('blur', propose, { once: true, signal: this.#client.ended });
      else propose();
    } catch (error) {
      this.#report(wordsOf(error));
    }
  }

  #clear(): void {
    this.#running?.abort();
    this.#messages = [];
    this.#setPictures([]);
    byId('turns').replaceChildren();
    this.#report('');
  }

  #report(text: string): void {
    say('ask-state', text, true);
  }

  async #addFiles(files: FileList | null | undefined): Promise<void> {
    const pictures = [...(files ?? [])].filter(isPicture);
    if (files && pictures.length < files.length) this.#report(t().wrongPictures);
    try {
      const urls = await Promise.all(pictures.map(dataUrlOf));
      this.#setPictures([...this.#pictures, ...urls].slice(0, picturesMax));
    } catch {
      this.#report(t().unreadPicture);
    }
  }

  #setPictures(urls: string[]): void {
    this.#pictures = urls;
    byId('pictures').replaceChildren(
      ...urls.map((src, at) => {
        const remove = button(t().remove, () => this.#setPictures(urls.filter((_, other) => other !== at)));
        return element('span', {}, [element('img', { src, alt: t().picture(at + 1) }), remove]);
      }),
    );
  }

  async #send(): Promise<void> {
    const [area, system] = [areaById('prompt'), areaById('system').value.trim()];
    const [written, pictures, before] = [area.value, this.#pictures, this.#messages];
    const prompt = written.trim();
    if (this.#running || (!prompt && pictures.length === 0)) return;
    const running = (this.#running = new AbortController());
    const messages = [...before, { role: 'user', content: contentOf(prompt, pictures) }];
    const asked = new PlaygroundTurn('you', pictures);
    asked.add(prompt);
    asked.end();
    area.value = '';
    this.#setPictures([]);
    this.#report('');
    buttonById('send').disabled = true;
    byId('stop').hidden = false;
    const body = {
      model: inputById('model').value.trim(),
      stream: true,
      stream_options: { include_usage: true },
      messages: [...(system ? [{ role: 'system', content: system }] : []), ...messages],
      ...numberIn('temperature'),
      ...numberIn('max_completion_tokens'),
    };
    const { text, isWhole } = await this.#answer(body, running.signal);
    // What came of a conversation that was left must not get into the next one.
    if (!this.#client.ended.aborted && this.#messages === before) {
      // Also what was said until it was stopped.
      if (text !== '') this.#messages = [...messages, { role: 'assistant', content: text }];
      else if (isWhole) this.#messages = messages;
      else {
        // A question without an answer is no part of the conversation: what refused it would refuse the next one as well.
        if (area.value === '') area.value = written;
        if (this.#pictures.length === 0) this.#setPictures(pictures);
      }
    }
    this.#running = undefined;
    buttonById('send').disabled = false;
    byId('stop').hidden = true;
  }

  /** `isWhole`: the model said all that it wanted to say. */
  async #answer(body: object, signal: AbortSignal): Promise<{ text: string; isWhole: boolean }> {
    const turn = new PlaygroundTurn('model');
    const beganMs = performance.now();
    const seconds = (): string => `${((performance.now() - beganMs) / 1000).toFixed(1)} s`;
    const waiting = setInterval(() => turn.say(t().waiting(seconds())), 500);
    const mark = crypto.getRandomValues(new Uint32Array(1))[0]!.toString(36);
    const headers = { 'x-relay-tags': `${markTag}=${mark}` };
    let [id, usage, ending]: [string | null, TurnUsage | undefined, string] = [null, undefined, ''];
    let isRefused = false;
    try {
      const call = { method: 'POST', body, signal, headers };
      const response = await this.#client.send('/v1/chat/completions', call);
      id = response.headers.get('x-request-id');
      if (!response.body) throw new Error(t().cutAnswer);
      for await (const chunk of chunksOf(response.body)) {
        usage = chunk.usage ?? usage;
        const [choice] = chunk.choices ?? [];
        const images = choice?.delta?.images;
        if (choice?.delta?.content || images) clearInterval(waiting);
        if (choice?.delta?.content) turn.add(choice.delta.content);
        if (choice?.delta?.reasoning_content) turn.think(choice.delta.reasoning_content);
        if (Array.isArray(images)) turn.addPictures(images);
        if (choice?.finish_reason === 'length') ending = t().cutAtLength;
      }
    } catch (error) {
      ending = endingOf(error, signal);
      isRefused = error instanceof CallFailed;
    }
    clearInterval(waiting);
    turn.end();
    const answered = { text: turn.text, isWhole: ending === '' };
    if (this.#client.ended.aborted) return answered;
    const words = `${seconds()}${usage ? `, ${tokensOf(usage)}` : ''}${ending}`;
    const isWrong = ending !== '' && !signal.aborted;
    turn.say(signal.aborted ? words + t().costFollows : words, isWrong);
    const priced = (row: UsageEntry): void =>
      turn.say(t().cost(chargeOf(row).replace('\n', ' '), words, row.id), isWrong);
    const waitsMs = signal.aborted ? stoppedCostAfterMs : costAfterMs;
    if (!isRefused) void this.#cost({ id, mark }, waitsMs).then((row) => row && priced(row));
    return answered;
  }

  async #cost(
    { id, mark }: { id: string | null; mark: string },
    waitsMs: readonly number[],
  ): Promise<UsageEntry | undefined> {
    for (const waitMs of waitsMs) {
      await new Promise((resolve) => setTimeout(resolve, waitMs));
      if (this.#client.ended.aborted) return undefined;
      const list = await this.#client.json<UsageList>(usagePath(20, null)).catch(() => undefined);
      const row = list?.data.find((entry) => entry.id === id || entry.tags?.[markTag] === mark);
      if (!row) continue;
      this.#spent();
      return row;
    }
    return undefined;
  }
}

/** Pictures as models take them, before the text that is about them. */
function contentOf(text: string, pictures: readonly string[]) {
  if (pictures.length === 0) return text;
  const parts = pictures.map((url) => ({ type: 'image_url', image_url: { url } }));
  return [...parts, { type: 'text', text }];
}

/** What a field of this name says; nothing where it is empty or no number. */
function numberIn(id: 'temperature' | 'max_completion_tokens'): object {
  const { valueAsNumber: value } = inputById(id);
  return Number.isNaN(value) ? {} : { [id]: value };
}

const tokensOf = ({ prompt_tokens: input = 0, completion_tokens: output = 0 }: TurnUsage): string =>
  t().turnTokens(input, output);

function endingOf(error: unknown, signal: AbortSignal): string {
  if (signal.aborted) return t().isStopped;
  return ` ${error instanceof CallFailed ? error.message : t().failed(error instanceof Error ? error.message : '')}`;
}
