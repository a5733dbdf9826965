/** A causal block map: full, partial and empty squares. JupyterLab colours it by its class. */

import { LabIcon } from '@jupyterlab/ui-components';

const SVG = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24">
  <g class="jp-icon3" fill="#616161">
    <path d="M3 3h5.4v5.4H3zM3 9.3h5.4v5.4H3zM9.3 9.3h5.4v5.4H9.3zM3 15.6h5.4V21H3zM9.3 15.6h5.4V21H9.3zM15.6 15.6H21V21h-5.4z"/>
    <path fill-opacity=".32" d="M9.3 3h5.4v5.4H9.3zM15.6 9.3H21v5.4h-5.4z"/>
  </g>
</svg>`;

export const cuteIcon = new LabIcon({ name: 'cute-lab:icon', svgstr: SVG });

/** The launcher shows kernels by an address; this one holds the picture itself, in a blue that both themes can have. */
export const LAUNCHER_ICON = `data:image/svg+xml,${encodeURIComponent(SVG.replace('#616161', '#1976d2'))}`;
