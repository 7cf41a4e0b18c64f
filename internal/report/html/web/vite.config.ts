import { defineConfig } from 'vite';

// One script and one style sheet with fixed names: the report holds both inline, so there is
// nothing to fetch, and the names need no hash. A classic script (iife: one function, called
// immediately) runs from a file:// page, where modules may not.
export default defineConfig({
  build: {
    outDir: 'dist',
    target: 'es2022',
    cssCodeSplit: false,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 2000,
    license: { fileName: 'LICENSES.md' }, // of the libraries in the bundle
    lib: {
      entry: 'src/main.ts',
      name: 'noether',
      formats: ['iife'],
      fileName: () => 'report.js',
      cssFileName: 'report',
    },
  },
  define: { 'process.env.NODE_ENV': JSON.stringify('production') },
});
