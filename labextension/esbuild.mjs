// The parts that live outside of JupyterLab: the widget's module, and the script and style of an exported page. And the extension's
// style sheet, which JupyterLab's builder would leave as it was written.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';

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

// A widget's state, which notebooks save, holds its module: packed it leaves room for the map. Unpacked it becomes a module as anywidget
// makes one of any text.
const packed = code => `const gzip = Uint8Array.from(atob('${gzipSync(code, { level: 9 }).toString('base64')}'), c => c.charCodeAt(0));
const text = await new Response(new Blob([gzip]).stream().pipeThrough(new DecompressionStream('gzip'))).text();
const url = URL.createObjectURL(new Blob([text], { type: 'text/javascript' }));
const { default: widget } = await import(/* @vite-ignore */ url);
URL.revokeObjectURL(url);
export default widget;
`;

const { outputFiles } = await build({ ...common, plugins: [style], entryPoints: ['src/widget.ts'], format: 'esm', write: false });
await mkdir(out, { recursive: true }); // a fresh clone has none
await writeFile(`${out}/widget.js`, packed(outputFiles[0].contents));
await build({ ...common, plugins: [style], entryPoints: ['src/page.ts'], format: 'iife', outfile: `${out}/page.js` });
await build({ ...common, entryPoints: ['style/page.css'], outfile: `${out}/page.css` });
await build({ ...common, entryPoints: ['style/base.css'], outfile: 'lib/style.css' });
