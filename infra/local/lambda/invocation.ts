import type { IncomingMessage } from 'node:http';

/** Why an invocation failed, in Lambda's form. */
export interface FunctionError {
  errorType: string;
  errorMessage: string;
}

/** Receives the outcome of one invocation: exactly one of these is called, once. */
export interface Responder {
  /** The function failed before it answered. */
  failed(error: FunctionError): void;
  /** The whole answer, as JSON. */
  buffered(payload: Buffer): void;
  /**
   * A streamed answer began. The body ends, or errors when the environment dies; trailers name a failure that
   * came after the beginning. Not reading holds the function back.
   */
  streaming(body: IncomingMessage, contentType: string): void;
}

export interface Invocation {
  id: string;
  /** JSON text of the event. */
  event: string;
  responder: Responder;
}

/** What every environment of a function is started with. */
export interface FunctionSettings {
  /** Short, for log lines: `chat`. */
  name: string;
  arn: string;
  /** `index.handler` in this folder. */
  folder: string;
  handler: string;
  timeoutMs: number;
  memoryMegabytes: number;
  environment: Record<string, string>;
  /** Requests queue when that many environments are busy. */
  environmentsMax: number;
}
