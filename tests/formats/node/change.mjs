// node change.mjs FILE STEPS: create or open a file with the official tools and change it.
// STEPS is a file of JSON: [["create", dim], ["ingest", ids, vectors], ["delete", ids], ["compact"], ["reopen"]].
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const { RvfDatabase } = createRequire(import.meta.url)('@ruvector/rvf-node');
const [file, steps] = process.argv.slice(2);
let db = null;
for (const [step, ...given] of JSON.parse(readFileSync(steps, 'utf8'))) {
  if (step === 'create') {
    db = RvfDatabase.create(file, { dimension: given[0], metric: 'cosine' });
    continue;
  }
  db ??= RvfDatabase.open(file);
  if (step === 'ingest') db.ingestBatch(Float32Array.from(given[1].flat()), given[0]);
  else if (step === 'delete') db.delete(given[0]);
  else if (step === 'compact') db.compact();
  else if (step === 'reopen') {
    db.close();
    db = RvfDatabase.open(file);
  } else throw new Error(`unknown step ${step}`);
}
console.log(JSON.stringify({ total: db.status().totalVectors, epoch: db.status().currentEpoch }));
db.close();
