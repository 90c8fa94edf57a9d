import type { LiveTask } from './live-task.ts';

interface OfTenant {
  readonly name: string;
  readonly tasks: Map<string, LiveTask>;
}

/** Live tasks by tenant, then by id: an id is unique in its tenant, and two small keys cost less than a joined one. */
export class TaskIndex {
  readonly #byTenant = new Map<string, OfTenant>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(tenant: string, id: string): LiveTask | undefined {
    return this.#byTenant.get(tenant)?.tasks.get(id);
  }

  *values(): Generator<LiveTask> {
    for (const { tasks } of this.#byTenant.values()) yield* tasks.values();
  }

  add(task: LiveTask): void {
    let ofTenant = this.#byTenant.get(task.tenant);
    if (ofTenant === undefined) {
      ofTenant = { name: task.tenant, tasks: new Map() };
      this.#byTenant.set(task.tenant, ofTenant);
    }
    ofTenant.tasks.set(task.id, task);
    this.#size += 1;
  }

  remove(task: LiveTask): void {
    const ofTenant = this.#byTenant.get(task.tenant);
    if (ofTenant?.tasks.get(task.id) !== task) return;
    ofTenant.tasks.delete(task.id);
    this.#size -= 1;
    if (ofTenant.tasks.size === 0) this.#byTenant.delete(task.tenant);
  }
}
