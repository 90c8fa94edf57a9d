#!/usr/bin/env node
import { register } from 'tsx/esm/api';

// `npx taskledger` in a clone: the command line from its sources, so that it is never older than they are.
register();
await import('../../src/cli/main.ts');
