/** Prompts, with the tokens that the public tokenizer o200k_base makes of them (test/simulation/texts.test.ts). */
const sentence = 'The ferry leaves at seven, and whoever is late waits an hour for the next one.';

export const texts: readonly [text: string, tokens: number][] = [
  ['Hello!', 2],
  [sentence, 18],
  [`${sentence} `.repeat(25).trim(), 450],
  ['export const total = (rows) => rows.reduce((sum, { amount }) => sum + amount, 0n);\n'.repeat(6), 150],
  ['渡轮七点出发,迟到的人要等一个小时才能坐下一班。', 19],
  ['31415926535897932384626433832795028841971693993751', 17],
];
