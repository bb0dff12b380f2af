/** The fields of a chat request that the demo upstream reads. */
export interface DemoRequest {
  model: string;
  messages: DemoMessage[];
  stream?: boolean | null;
  stream_options?: { include_usage?: boolean } | null;
  max_tokens?: number | null;
  max_completion_tokens?: number | null;
  n?: number | null;
  stop?: string | string[] | null;
  tools?: DemoTool[] | null;
  tool_choice?: 'none' | 'auto' | 'required' | { function?: { name: string } } | null;
}

export interface DemoMessage {
  role: string;
  content?: string | { type: string; text?: string }[] | null;
  tool_call_id?: string;
  tool_calls?: { id: string; function: { name: string } }[] | null;
}

export interface DemoTool {
  function?: { name: string; parameters?: JsonSchema };
}

export interface JsonSchema {
  type?: string | string[];
  properties?: Record<string, JsonSchema>;
  required?: string[];
  items?: JsonSchema;
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  anyOf?: JsonSchema[];
  minimum?: number;
}

export const demoModels = ['demo-chat', 'demo-vision', 'demo-slow', 'demo-error'];

export function isDemoRequest(body: unknown): body is DemoRequest {
  if (typeof body !== 'object' || body === null) return false;
  const { model, messages } = body as Partial<DemoRequest>;
  return typeof model === 'string' && Array.isArray(messages) && messages.length > 0;
}

export function textOf(message: DemoMessage | undefined): string {
  if (typeof message?.content === 'string') return message.content;
  return message?.content?.map((part) => part.text ?? '').join(' ') ?? '';
}

export const lastUserText = (request: DemoRequest): string =>
  textOf(request.messages.findLast((message) => message.role === 'user'));

export function imagesIn(request: DemoRequest): number {
  const parts = request.messages.flatMap(({ content }) => (Array.isArray(content) ? content : []));
  return parts.filter((part) => part.type === 'image_url').length;
}
