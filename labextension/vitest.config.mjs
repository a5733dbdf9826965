import { readdirSync, readFileSync } from 'node:fs';
import { defineConfig } from 'vitest/config';

// What is mocked in one file would be mocked in the next: such files have a process each, the others save its start.
const all = readdirSync('tests').filter(name => name.endsWith('.spec.ts')).map(name => `tests/${name}`);
const mocks = all.filter(name => readFileSync(name, 'utf8').includes('vi.mock('));
const project = (name, include, isolate) => ({ test: { name, include, isolate, environment: 'jsdom' } });

export default defineConfig({
  test: { projects: [project('plain', all.filter(name => !mocks.includes(name)), false), project('mocked', mocks, true)] }
});
