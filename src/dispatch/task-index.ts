import type { LiveTask } from './live-task.ts';

/** Live tasks by tenant, then by id: an id is unique in its tenant, and two small keys cost less than a joined one. */
export class TaskIndex {
  readonly #byTenant = new Map<string, Map<string, LiveTask>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(tenant: string, id: string): LiveTask | undefined {
    return this.#byTenant.get(tenant)?.get(id);
  }

  add(task: LiveTask): void {
    let ofTenant = this.#byTenant.get(task.tenant);
    if (ofTenant === undefined) {
      ofTenant = new Map();
      this.#byTenant.set(task.tenant, ofTenant);
    }
    ofTenant.set(task.id, task);
    this.#size += 1;
  }

  remove(task: LiveTask): void {
    const ofTenant = this.#byTenant.get(task.tenant);
    if (ofTenant?.get(task.id) !== task) return;
    ofTenant.delete(task.id);
    this.#size -= 1;
    if (ofTenant.size === 0) this.#byTenant.delete(task.tenant);
  }
}
