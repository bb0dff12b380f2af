/** Texts of every kind that clients send, generated from a seed, and pages and sources of this repository. */
import { readdirSync, readFileSync } from 'node:fs';

const letters = 'abcdefghijklmnopqrstuvwxyz';
const root = new URL('../../../..', import.meta.url);

/** Numbers in [0, 1), the same for the same seed: mulberry32. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const filesOf = (folder: string, end: string): string =>
  readdirSync(new URL(folder, root), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(end))
    .toSorted()
    .slice(0, 12)
    .map((name) => readFileSync(new URL(`${folder}/${name}`, root), 'utf8').slice(0, 3_000))
    .join('\n');

const chinese =
  '今天的会议改到下午三点，请大家准时参加。这个函数返回一个数组，里面是所有用户的名字。在数据库中，索引可以提高查询速度，但是会占用空间。';
const japanese =
  'この関数はすべてのユーザー名を含む配列を返します。昨日の会議で決まったことを教えてください。';
const korean =
  '이 함수는 모든 사용자의 이름이 담긴 배열을 반환합니다. 어제 회의에서 결정된 내용을 알려 주세요.';
const others =
  'Bitte prüfen Sie, ob die Größe stimmt. Пожалуйста, проверьте размер файла. يرجى التحقق من حجم الملف. कृपया फ़ाइल का आकार जाँचें।';

/** Each kind with one text. */
export function corpus(seed: number): [string, string][] {
  const random = randomOf(seed);
  const from = (first: number, last: number): string =>
    String.fromCodePoint(first + Math.floor(random() * (last - first + 1)));
  const many = (count: number, one: () => string): string => Array.from({ length: count }, one).join('');
  const of = (characters: string): string => characters.charAt(Math.floor(random() * characters.length));
  const bytes = many(3_000, () => from(0, 255));
  const records = Array.from({ length: 60 }, () => ({
    id: Math.floor(random() * 1e9),
    name: many(7, () => of(letters)),
    score: random(),
    tags: ['red', 'blue'],
    parent: null,
  }));
  return [
    ['prose', filesOf('docs', '.md')],
    ['code', filesOf('shared', '.ts')],
    ['JSON', JSON.stringify(records)],
    ['JSON, indented', JSON.stringify(records, undefined, 2)],
    ['base64', btoa(bytes)],
    ['hexadecimal', many(3_000, () => of('0123456789abcdef'))],
    ['Chinese', chinese.repeat(20)],
    ['Chinese, any characters', many(2_000, () => from(0x4e00, 0x9fa5))],
    ['Japanese', japanese.repeat(20)],
    ['Korean', korean.repeat(20)],
    ['other alphabets', others.repeat(15)],
    ['emoji', many(1_000, () => from(0x1f600, 0x1f64f))],
    ['emoji, joined', '👩‍👩‍👧🏳️‍🌈👨🏽‍💻❤️🇩🇪'.repeat(80)],
    ['one letter a line', many(3_000, () => `${of(letters)}\n`)],
    ['one letter a word', many(3_000, () => `${of(letters)} `)],
    ['10,000 spaces', ' '.repeat(10_000)],
    ['10,000 lines', '\n'.repeat(10_000)],
    ['one letter repeated', 'a'.repeat(10_000)],
    ['one sign repeated', '-'.repeat(10_000)],
    ['one Chinese character repeated', '中'.repeat(3_000)],
    ['bytes as text', bytes],
    ['random letters', many(4_000, () => of(letters))],
    ['random capitals', many(4_000, () => of(letters.toUpperCase()))],
    ['random letters of both cases', many(4_000, () => of(letters + letters.toUpperCase()))],
    ['random signs', many(4_000, () => from(33, 47))],
    ['digits', many(4_000, () => of('0123456789'))],
  ];
}
