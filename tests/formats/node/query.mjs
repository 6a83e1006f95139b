// node query.mjs FILE QUERIES K: what the official reader says of a file, as JSON.
// QUERIES is a file of JSON: a list of vectors.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const { RvfDatabase } = createRequire(import.meta.url)('@ruvector/rvf-node');
const [file, queries, k] = process.argv.slice(2);
const db = RvfDatabase.openReadonly(file);
const answers = JSON.parse(readFileSync(queries, 'utf8')).map((query) =>
  db.query(Float32Array.from(query), Number(k)),
);
console.log(
  JSON.stringify({
    total: db.status().totalVectors,
    epoch: db.status().currentEpoch,
    dimension: db.dimension(),
    metric: db.metric(),
    segments: db.segments().map((segment) => segment.segType),
    answers,
  }),
);
db.close();
