import type { IncomingMessage } from 'node:http';

/** The error of a failed invocation, in Lambda's format. */
export interface FunctionError {
  errorType: string;
  errorMessage: string;
}

/** Receives the outcome of one invocation: exactly one method is called, once. */
export interface Responder {
  /** The function failed before it answered. */
  failed(error: FunctionError): void;
  /** The function returned a whole answer: JSON. */
  buffered(payload: Buffer): void;
  /**
   * A streamed answer started. The body ends, or emits an error when the function or the end of its process breaks the
   * connection. Trailers describe a failure after the start. The function waits while the body is not read, until `over`
   * aborts: then nothing more is written, and what is left must be read at once.
   */
  streaming(body: IncomingMessage, contentType: string, over: AbortSignal): void;
}

export interface Invocation {
  id: string;
  /** JSON text of the event. */
  event: string;
  responder: Responder;
}

/** The settings of all environments of one function. */
export interface FunctionSettings {
  /** Short name for log lines: `chat`. */
  name: string;
  arn: string;
  /** Number of the version that its environments run. Default: `$LATEST`. */
  version?: string;
  /** Folder that contains the handler's file. */
  folder: string;
  handler: string;
  timeoutMs: number;
  memoryMegabytes: number;
  environment: Record<string, string>;
  /** Requests are queued when this many environments are busy. */
  environmentsMax: number;
}
