/** A style sheet as text: esbuild puts it into the modules that live outside of JupyterLab. */
declare module '*.css' {
  const text: string;
  export default text;
}
