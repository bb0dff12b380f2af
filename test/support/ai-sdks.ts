import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAI as createOpenAI6 } from '@ai-sdk/openai-3';
import { generateText, isStepCount, Output, streamText, tool, type ModelMessage } from 'ai';
import * as ai6 from 'ai-6';

/** A version of the AI SDK, as far as tests call it. */
export interface AiSdk {
  version: number;
  createOpenAI: typeof createOpenAI;
  generateText: typeof generateText;
  streamText: typeof streamText;
  tool: typeof tool;
  Output: typeof Output;
  isStepCount: typeof isStepCount;
  /** The option that says how the model is to behave. */
  instructions(text: string): object;
  /** What goes into the messages of the next call. */
  messagesOf(result: object): Promise<ModelMessage[]>;
}

/** Its types are others than those of version 7, while what tests call is the same. */
const version6 = ai6 as unknown as Omit<AiSdk, 'version'>;

export const aiSdks: AiSdk[] = [
  {
    version: 7,
    createOpenAI,
    generateText,
    streamText,
    tool,
    Output,
    isStepCount,
    instructions: (text) => ({ instructions: text }),
    messagesOf: async (result) => (result as { responseMessages: ModelMessage[] }).responseMessages,
  },
  {
    version: 6,
    createOpenAI: createOpenAI6 as unknown as typeof createOpenAI,
    generateText: version6.generateText,
    streamText: version6.streamText,
    tool: version6.tool,
    Output: version6.Output,
    isStepCount: ai6.stepCountIs as unknown as typeof isStepCount,
    instructions: (text) => ({ system: text }),
    messagesOf: async (result) =>
      (await (result as { response: Promise<{ messages: ModelMessage[] }> }).response).messages,
  },
];
