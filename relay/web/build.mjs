// Builds dist/ from client/: the same bytes each time, with a hash of the sources beside them.
import { build } from "esbuild"
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { gzipSync } from "node:zlib"

const MOST = 15_000
process.chdir(import.meta.dirname)
rmSync("dist", { recursive: true, force: true })
await build({
  entryPoints: ["client/index.ts"], outfile: "dist/syndicate.js", bundle: true, minify: true, format: "esm", target: "es2022",
  platform: "neutral", external: ["node:*"], charset: "utf8", legalComments: "none", logLevel: "warning",
  banner: { js: "// syndicate-dataspace, Apache-2.0" },
})
execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "."], { stdio: "inherit" })
const sources = createHash("sha256")
for (const name of readdirSync("client").sort()) sources.update(name).update(readFileSync(`client/${name}`))
const size = gzipSync(readFileSync("dist/syndicate.js"), { level: 9 }).length
if (size > MOST) throw new Error(`dist/syndicate.js has ${size} bytes gzipped, more than ${MOST}`)
writeFileSync("dist/manifest.json", JSON.stringify({ sources: sources.digest("hex"), gzipped: size }, null, 2) + "\n")
console.log(`dist/syndicate.js: ${size} bytes gzipped`)
