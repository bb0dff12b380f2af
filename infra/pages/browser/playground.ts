/** The playground: streams a model's answer and shows its cost. */
import type { ModelList, UsageEntry, UsageList } from '../../../shared/wire/public-api.ts';
import { readChunks, type TurnUsage, readDataUrl, isPicture, PlaygroundTurn } from './turn.ts';
import {
  findTextArea,
  createButton,
  findButton,
  byId,
  createNode,
  findInput,
  handleSubmit,
  say,
} from './elements.ts';
import { t } from './language.ts';
import { formatCharge, buildUsagePath } from './ledger.ts';
import { CallFailed, describeError, type RelayClient } from './relay-client.ts';

const picturesMax = 6;
/** A call reaches the ledger a moment after its end. */
const costAfterMs = [400, 800, 1_600, 3_200, 6_400];
/** A stopped call is charged when the model has finished anyway. */
const stoppedCostAfterMs = [...costAfterMs, ...Array.from({ length: 20 }, () => 15_000)];
/** A call stopped before its first content has no known id, so this tag finds it. */
const markTag = 'playground';

/** The state before a question was sent. */
interface Asked {
  messages: object[];
  results: PlaygroundTurn | undefined;
  prompt: string;
  pictures: string[];
}

export class Playground {
  readonly #client: RelayClient;
  readonly #spent: () => void;
  #messages: object[] = [];
  #pictures: string[] = [];
  #asked: PlaygroundTurn | undefined;
  #running: AbortController | undefined;

  /** @param spent is called when a call has been charged */
  constructor(client: RelayClient, spent: () => void) {
    this.#client = client;
    this.#spent = spent;
    const here = { signal: client.ended };
    const [prompt, files] = [findTextArea('prompt'), findInput('files')];
    handleSubmit('ask', () => void this.#send(), here);
    const handleKey = (event: KeyboardEvent): void => {
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      void this.#send();
    };
    prompt.addEventListener('keydown', handleKey, here);
    prompt.addEventListener('paste', (event) => void this.#addFiles(event.clipboardData?.files), here);
    const addChosenFiles = () => void this.#addFiles(files.files).then(() => (files.value = ''));
    files.addEventListener('change', addChosenFiles, here);
    // The list offers only models that match the text, so select it to be replaced.
    const model = findInput('model');
    model.addEventListener('focus', () => model.select(), here);
    byId('stop').addEventListener('click', () => this.#running?.abort(), here);
    byId('clear').addEventListener('click', () => this.#clear(), here);
    client.ended.addEventListener('abort', () => this.#clear());
  }

  async show(allowed: string[] | null): Promise<void> {
    try {
      const { data } = await this.#client.json<ModelList>('/v1/models');
      const names = data.map(({ id }) => id).filter((id) => allowed === null || allowed.includes(id));
      byId('names').replaceChildren(...names.map((value) => createNode('option', { value })));
      const model = findInput('model');
      const propose = (): void => {
        if (model.value === '') model.value = names[0] ?? '';
      };
      // Someone who is in the field is about to type, and would type behind the proposal.
      if (document.activeElement === model)
        model.addEventListener('blur', propose, { once: true, signal: this.#client.ended });
      else propose();
    } catch (error) {
      this.#report(describeError(error));
    }
  }

  #clear(): void {
    this.#running?.abort();
    this.#messages = [];
    this.#asked = undefined;
    this.#setPictures([]);
    byId('turns').replaceChildren();
    this.#report('');
  }

  #report(text: string, isWrong = true): void {
    say('ask-state', text, isWrong);
  }

  async #addFiles(files: FileList | null | undefined): Promise<void> {
    const pictures = [...(files ?? [])].filter(isPicture);
    if (files && pictures.length < files.length) this.#report(t().wrongPictures);
    try {
      const urls = await Promise.all(pictures.map(readDataUrl));
      this.#setPictures([...this.#pictures, ...urls].slice(0, picturesMax));
    } catch {
      this.#report(t().unreadPicture);
    }
  }

  #setPictures(urls: string[]): void {
    this.#pictures = urls;
    byId('pictures').replaceChildren(
      ...urls.map((src, at) => {
        const remove = createButton(t().remove, () =>
          this.#setPictures(urls.filter((_, other) => other !== at)),
        );
        return createNode('span', {}, [createNode('img', { src, alt: t().picture(at + 1) }), remove]);
      }),
    );
  }

  async #send(): Promise<void> {
    if (this.#running) return;
    const asked: Asked = {
      messages: [...this.#messages],
      results: this.#asked,
      prompt: findTextArea('prompt').value,
      pictures: this.#pictures,
    };
    const body = this.#body();
    if (!body) return;
    const conversation = this.#messages;
    const running = (this.#running = new AbortController());
    findButton('send').disabled = true;
    byId('stop').hidden = false;
    const { turn, isWhole } = await this.#answer(body, running.signal);
    // The answer of a conversation that was left must not enter the next one.
    if (!this.#client.ended.aborted && this.#messages === conversation) {
      if (isWhole || turn.text !== '') this.#keep(turn, isWhole);
      else this.#putBack(asked);
    }
    this.#running = undefined;
    findButton('send').disabled = false;
    byId('stop').hidden = true;
  }

  /** Returns undefined, after telling why, when there is nothing to send or the tools are invalid. */
  #body(): object | undefined {
    const [model, prompt, tools] = [findInput('model'), findTextArea('prompt'), findTextArea('tools')].map(
      ({ value }) => value.trim(),
    );
    const results = this.#asked?.results ?? [];
    if (!prompt && this.#pictures.length === 0 && results.length === 0) return undefined;
    const given = readTools(tools ?? '');
    if (given === undefined) {
      this.#report(t().wrongTools);
      return undefined;
    }
    this.#report('');
    for (const { id, text } of results)
      this.#messages.push({ role: 'tool', tool_call_id: id, content: text });
    this.#asked = undefined;
    if (prompt || this.#pictures.length > 0) this.#addQuestion(prompt ?? '');
    const system = findTextArea('system').value.trim();
    return {
      model,
      stream: true,
      stream_options: { include_usage: true },
      messages: [...(system ? [{ role: 'system', content: system }] : []), ...this.#messages],
      ...(given.length > 0 && { tools: given }),
      ...readNumber('temperature'),
      ...readNumber('max_completion_tokens'),
    };
  }

  #addQuestion(prompt: string): void {
    const pictures = this.#pictures;
    const parts = pictures.map((url) => ({ type: 'image_url', image_url: { url } }));
    const text = { type: 'text', text: prompt };
    this.#messages.push({ role: 'user', content: pictures.length > 0 ? [...parts, text] : prompt });
    const turn = new PlaygroundTurn('you', pictures);
    turn.add(prompt);
    turn.end();
    findTextArea('prompt').value = '';
    this.#setPictures([]);
  }

  /** `isWhole` if the model finished its answer. */
  async #answer(body: object, signal: AbortSignal): Promise<{ turn: PlaygroundTurn; isWhole: boolean }> {
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
      for await (const chunk of readChunks(response.body)) {
        usage = chunk.usage ?? usage;
        const [choice] = chunk.choices ?? [];
        const images = choice?.delta?.images;
        if (choice?.delta?.content || choice?.delta?.tool_calls || images) clearInterval(waiting);
        if (choice?.delta?.content) turn.add(choice.delta.content);
        if (choice?.delta?.reasoning_content) turn.think(choice.delta.reasoning_content);
        if (choice?.delta?.tool_calls) turn.addCalls(choice.delta.tool_calls);
        if (Array.isArray(images)) turn.addPictures(images);
        if (choice?.finish_reason === 'length') ending = t().cutAtLength;
      }
    } catch (error) {
      ending = describeEnding(error, signal);
      isRefused = error instanceof CallFailed;
    }
    clearInterval(waiting);
    turn.end();
    const answered = { turn, isWhole: ending === '' };
    if (this.#client.ended.aborted) return answered;
    const words = `${seconds()}${usage ? `, ${tokensOf(usage)}` : ''}${ending}`;
    const isWrong = ending !== '' && !signal.aborted;
    turn.say(signal.aborted ? words + t().costFollows : words, isWrong);
    const showCost = (row: UsageEntry): void =>
      turn.say(t().cost(formatCharge(row).replace('\n', ' '), words, row.id), isWrong);
    const waitsMs = signal.aborted ? stoppedCostAfterMs : costAfterMs;
    if (!isRefused) void this.#cost({ id, mark }, waitsMs).then((row) => row && showCost(row));
    return answered;
  }

  /** Removes a question without an answer from the conversation: its cause would refuse the next one as well. */
  #putBack({ messages, results, prompt, pictures }: Asked): void {
    this.#messages = messages;
    this.#asked = results;
    if (results) this.#report(t().resultsWanted, false);
    const area = findTextArea('prompt');
    if (area.value === '') area.value = prompt;
    if (this.#pictures.length === 0) this.#setPictures(pictures);
  }

  /**
   * The answer so far goes into the next question, even if it was stopped. Its tool calls go only if it is complete:
   * half a call is refused by vendors.
   */
  #keep(turn: PlaygroundTurn, isWhole: boolean): void {
    const calls = isWhole ? turn.calls : [];
    if (turn.text === '' && calls.length === 0) return;
    this.#messages.push({
      role: 'assistant',
      content: turn.text === '' ? null : turn.text,
      ...(calls.length > 0 && { tool_calls: calls }),
    });
    if (calls.length === 0) return;
    this.#asked = turn;
    this.#report(t().resultsWanted, false);
  }

  async #cost(
    { id, mark }: { id: string | null; mark: string },
    waitsMs: readonly number[],
  ): Promise<UsageEntry | undefined> {
    for (const waitMs of waitsMs) {
      await new Promise((resolve) => setTimeout(resolve, waitMs));
      if (this.#client.ended.aborted) return undefined;
      const list = await this.#client.json<UsageList>(buildUsagePath(20, null)).catch(() => undefined);
      const row = list?.data.find((entry) => entry.id === id || entry.tags?.[markTag] === mark);
      if (!row) continue;
      this.#spent();
      return row;
    }
    return undefined;
  }
}

function readNumber(id: 'temperature' | 'max_completion_tokens'): object {
  const { valueAsNumber: value } = findInput(id);
  return Number.isNaN(value) ? {} : { [id]: value };
}

function readTools(written: string): object[] | undefined {
  try {
    const value: unknown = JSON.parse(written === '' ? '[]' : written);
    return Array.isArray(value) ? (value as object[]) : undefined;
  } catch {
    return undefined;
  }
}

const tokensOf = ({ prompt_tokens: input = 0, completion_tokens: output = 0 }: TurnUsage): string =>
  t().turnTokens(input, output);

function describeEnding(error: unknown, signal: AbortSignal): string {
  if (signal.aborted) return t().isStopped;
  return ` ${error instanceof CallFailed ? error.message : t().failed(error instanceof Error ? error.message : '')}`;
}
