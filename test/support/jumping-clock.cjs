// Loaded before a process of a test (NODE_OPTIONS=--require): its wall clock is off by the milliseconds that the file
// JUMPING_CLOCK holds at the time. Threads of the process are off as well. What is monotonic stays as it is.
const { readFileSync } = require('node:fs');

const file = process.env['JUMPING_CLOCK'];
const HostDate = globalThis.Date;
const READ_EVERY_MS = 20;

let offset = 0;
let readAt = Number.NEGATIVE_INFINITY;
function offsetMs() {
  const now = performance.now();
  if (file !== undefined && now - readAt > READ_EVERY_MS) {
    readAt = now;
    offset = Number(readFileSync(file, 'utf8')) || 0;
  }
  return offset;
}

class JumpingDate extends HostDate {
  constructor(...given) {
    if (given.length === 0) super(HostDate.now() + offsetMs());
    else super(...given);
  }

  static now() {
    return HostDate.now() + offsetMs();
  }
}
globalThis.Date = JumpingDate;
