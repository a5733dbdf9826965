/** The plugins of this extension. */

import { plugin } from './lab/plugin';

export default [plugin];
