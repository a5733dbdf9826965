// The parts that live outside of JupyterLab: the widget's module, and the script and style of an exported page. And the extension's
// style sheet, which JupyterLab's builder would leave as it was written.
import { readFile } from 'node:fs/promises';

import { build, transform } from 'esbuild';

// A style sheet in a module is a text, which the loader `text` alone would leave as it was written.
const style = {
  name: 'style',
  setup: ({ onLoad }) =>
    onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const { code } = await transform(await readFile(path, 'utf8'), { loader: 'css', minify: true });
      return { contents: code.trim(), loader: 'text' };
    })
};
const common = { bundle: true, minify: true, target: 'es2022', legalComments: 'none' };
const out = '../cute_lab/static';

await build({ ...common, plugins: [style], entryPoints: ['src/widget.ts'], format: 'esm', outfile: `${out}/widget.js` });
await build({ ...common, plugins: [style], entryPoints: ['src/page.ts'], format: 'iife', outfile: `${out}/page.js` });
await build({ ...common, entryPoints: ['style/page.css'], outfile: `${out}/page.css` });
await build({ ...common, entryPoints: ['style/base.css'], outfile: 'lib/style.css' });
