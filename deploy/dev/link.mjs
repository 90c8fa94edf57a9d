import { linkCommandLine } from './install.mjs';

// After `npm ci` in a clone.

linkCommandLine();
