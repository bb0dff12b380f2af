/** Unique words, each in one place that must stay private between two parties. */
export const canaries = {
  key: 'sk-canary-of-the-key-0123456789',
  unknownKey: 'sk-canary-of-an-unknown-key',
  malformedKey: 'canary-of-a-malformed-key',
  // It looks like an ordinary word, so only code that knows it can remove it.
  secret: 'canaryofthesecret',
  header: 'canary-of-a-header',
  cookie: 'canary-of-a-cookie',
  query: 'canary-of-the-query',
  path: 'canary-of-the-path',
  system: 'canary-of-the-system-message',
  prompt: 'canary-of-the-prompt',
  image: 'canary-of-the-image-url',
  argument: 'canary-of-a-tool-argument',
  result: 'canary-of-a-tool-result',
  toolName: 'canary_of_a_tool_name',
  unknownField: 'canary-of-an-unknown-field',
  endUser: 'canary-of-an-end-user',
  wrongValue: 'canary-of-a-wrong-value',
  brokenJson: 'canary-of-broken-json',
  answer: 'canary-of-the-answer',
  reasoning: 'canary-of-the-reasoning',
  answerArgument: 'canary-of-an-answered-argument',
  errorMessage: 'canary-of-an-error-message',
  errorCode: 'canary-of-an-error-code',
  html: 'canary-of-a-web-page',
  junk: 'canary-of-junk',
  replyHeader: 'canary-of-a-reply-header',
  store: 'canary-of-the-store',
} as const;

/** A request with a canary in every place that a client fills. */
export const fullRequest = (model: string, stream: boolean) => ({
  model,
  stream,
  user: canaries.endUser,
  answer_style: canaries.unknownField,
  messages: [
    { role: 'system', content: canaries.system },
    {
      role: 'user',
      name: 'somebody',
      content: [
        { type: 'text', text: canaries.prompt },
        { type: 'image_url', image_url: { url: `https://images.example/${canaries.image}.png` } },
      ],
    },
    {
      role: 'assistant',
      content: null,
      tool_calls: [
        {
          id: 'call_1',
          type: 'function',
          function: { name: canaries.toolName, arguments: JSON.stringify({ city: canaries.argument }) },
        },
      ],
    },
    { role: 'tool', tool_call_id: 'call_1', content: canaries.result },
  ],
  tools: [{ type: 'function', function: { name: canaries.toolName, parameters: { type: 'object' } } }],
});
