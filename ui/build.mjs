// Bundles the islands into the Python package; the same sources give the same bytes.
import { build } from "esbuild";
import { fileURLToPath } from "node:url";

const outdir = process.argv[2] ?? fileURLToPath(new URL("../src/penstock/widget/static", import.meta.url));
const shared = {
  absWorkingDir: fileURLToPath(new URL(".", import.meta.url)),
  bundle: true,
  charset: "ascii",
  legalComments: "none",
  loader: { ".css": "text" },
  logLevel: "warning",
  minify: true,
  outdir,
  target: ["es2022"],
};

await build({ ...shared, entryPoints: ["page.ts"], format: "iife" });
await build({ ...shared, entryPoints: ["widget.ts"], format: "esm" });
