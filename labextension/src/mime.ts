/** The MIME renderer, and the viewer of *.cute.json files: what works in an untrusted notebook, with no kernel. */

import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';

import { MIME, SLIDERS } from './core/record';
import { CuteRenderer } from './renderer';
import { SlidersLine } from './sliders';

/** `safe`: nothing of the data is ever markup or code. Rank 0 comes before a picture and Markdown, which the same outputs have. */
export const rendererFactory: IRenderMime.IRendererFactory = {
  safe: true,
  mimeTypes: [MIME, SLIDERS],
  defaultRank: 0,
  createRenderer: ({ mimeType }) => (mimeType === SLIDERS ? new SlidersLine() : new CuteRenderer())
};

const FILE_TYPE = 'cute-lab-record';

const extension: IRenderMime.IExtension = {
  id: 'cute-lab:renderer',
  description: 'Shows records of generated GPU kernels.',
  rendererFactory,
  rank: 0,
  dataType: 'string',
  fileTypes: [{ name: FILE_TYPE, displayName: 'CuTe Lab record', extensions: ['.cute.json'], mimeTypes: [MIME], fileFormat: 'text' }],
  documentWidgetFactoryOptions: {
    name: 'CuTe Lab record',
    primaryFileType: FILE_TYPE,
    fileTypes: [FILE_TYPE, 'json'],
    defaultFor: [FILE_TYPE]
  }
};

export default extension;
