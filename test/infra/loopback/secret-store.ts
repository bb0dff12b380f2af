/** The part of SSM that a deployment, `ops init` and functions need: parameters by name. */
import type { Account } from './account.ts';

type Answer = [status: number, body: Record<string, unknown>];

export class SecretStore {
  /** Plain values by name. */
  readonly values = new Map<string, string>();
  readonly #account: Account;

  constructor(account: Account) {
    this.#account = account;
  }

  /** @param target `AmazonSSM.GetParameter` */
  answer(
    target: string,
    { Name = '', Value = '', Overwrite }: { Name?: string; Value?: string; Overwrite?: boolean },
  ): Answer {
    if (target === 'AmazonSSM.PutParameter') {
      if (this.values.has(Name) && Overwrite !== true) return refused('ParameterAlreadyExists', Name);
      this.values.set(Name, Value);
      return [200, { Version: 1 }];
    }
    if (target !== 'AmazonSSM.GetParameter') return [501, { __type: 'NotImplemented', message: target }];
    const value = this.values.get(Name) ?? this.#ofStacks(Name);
    if (value === undefined) return refused('ParameterNotFound', Name);
    return [200, { Parameter: { Name, Type: 'String', Value: value } }];
  }

  /** A parameter that a stack created: the version of the bootstrap. */
  #ofStacks(name: string): string | undefined {
    const found = this.#account.standing.find(
      ({ type, properties }) => type === 'AWS::SSM::Parameter' && properties['Name'] === name,
    );
    return found && String(found.properties['Value']);
  }
}

const refused = (kind: string, name: string): Answer => [400, { __type: kind, message: `${kind}: ${name}` }];
