import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node';
import type { Names } from '../log/subjects.ts';
import type { Logger } from '../observe/log.ts';
import type { Clock } from '../platform/clock.ts';
import type { Service } from '../platform/service.ts';
import type { DispatchCore } from './core.ts';
import type { WhyFact } from './explain.ts';

/** What is asked on `names.explain`, as JSON. */
export interface WhyQuestion {
  readonly tenant: string;
  readonly taskId: string;
}

/** What the leading dispatcher answers, as JSON. */
export interface WhyAnswer {
  /** Most telling first; never empty. */
  readonly facts: readonly WhyFact[];
}

/** What is asked on `names.workFrom`, as JSON. */
export interface WorkFromQuestion {
  readonly type: string;
  readonly version: number;
}

/** What the leading dispatcher answers, as JSON. */
export interface WorkFromAnswer {
  /** No event of the log before this sequence is a work item of the type and version that somebody has yet to claim. */
  readonly fromSeq: number;
}

interface AnswersParts {
  readonly nc: NatsConnection;
  readonly names: Names;
  readonly group: string;
  readonly core: Pick<DispatchCore, 'explain' | 'workFrom'>;
  readonly leads: () => boolean;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Answers questions by core NATS, request and reply. A standby is silent: it may lag behind. */
export class Answers implements Service {
  readonly name = 'answers of the dispatcher';
  readonly #parts: AnswersParts;
  #subscriptions: Subscription[] = [];

  constructor(parts: AnswersParts) {
    this.#parts = parts;
  }

  async start(): Promise<void> {
    const { names, group, core, clock } = this.#parts;
    this.#subscriptions = [
      this.#answer<WhyAnswer>(names.explain(group), ({ tenant, taskId }) =>
        typeof tenant === 'string' && typeof taskId === 'string'
          ? { facts: core.explain(tenant, taskId, clock.now()) }
          : undefined,
      ),
      this.#answer<WorkFromAnswer>(names.workFrom(group), ({ type, version }) =>
        typeof type === 'string' && typeof version === 'number'
          ? { fromSeq: core.workFrom(type, version) }
          : undefined,
      ),
    ];
  }

  async stop(): Promise<void> {
    for (const subscription of this.#subscriptions.splice(0))
      if (!subscription.isClosed()) subscription.unsubscribe();
  }

  /** `to` answers undefined when it cannot make sense of the question. */
  #answer<A>(subject: string, to: (question: Question) => A | undefined): Subscription {
    return this.#parts.nc.subscribe(subject, {
      callback: (error, message) => {
        if (error !== null || !this.#parts.leads()) return;
        const answer = to(questionIn(message));
        if (answer === undefined) this.#parts.logger.warn({ subject }, 'a question is unreadable');
        else message.respond(JSON.stringify(answer));
      },
    });
  }
}

type Question = Partial<Record<keyof WhyQuestion | keyof WorkFromQuestion, unknown>>;

function questionIn(message: Msg): Question {
  try {
    const question: unknown = message.json();
    return typeof question === 'object' && question !== null ? { ...question } : {};
  } catch {
    return {};
  }
}
