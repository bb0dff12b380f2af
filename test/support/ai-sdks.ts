import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAI as createOpenAI6 } from '@ai-sdk/openai-3';
import { generateText, isStepCount, Output, streamText, tool, type ModelMessage } from 'ai';
import * as ai6 from 'ai-6';

/** The parts of an AI SDK version that tests call. */
export interface AiSdk {
  version: number;
  createOpenAI: typeof createOpenAI;
  generateText: typeof generateText;
  streamText: typeof streamText;
  tool: typeof tool;
  Output: typeof Output;
  isStepCount: typeof isStepCount;
  /** The option that describes the model's abilities. */
  instructions(text: string): object;
  /** The messages that the next call adds. */
  messagesOf(result: object): Promise<ModelMessage[]>;
}

/** Its types differ from version 7, but the parts that tests call are the same. */
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
