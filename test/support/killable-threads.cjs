// Loaded before a process of a test (NODE_OPTIONS=--require): at SIGUSR2 its threads are ended, as a crash would end them.
const threads = require('node:worker_threads');
const { syncBuiltinESMExports } = require('node:module');

const running = new Set();
threads.Worker = class extends threads.Worker {
  constructor(...given) {
    super(...given);
    running.add(this);
    this.once('exit', () => running.delete(this));
  }
};
syncBuiltinESMExports();
process.on('SIGUSR2', () => {
  for (const thread of running) void thread.terminate();
});
