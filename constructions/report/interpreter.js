"use strict";
// The blocks of a circuit on a sequence of tokens, in float64, which holds all of their numbers exactly: what is not
// exact (a pre-activation at which silu is curved, an integer beyond 2^53) throws. The equations are those of
// compiler/ir/block.py. A sparse matrix is a list of rows, each a flat list [column, weight, column, weight, …].

const SAFE_POSITIVE = 20.1, SAFE_NEGATIVE = -104, KEPT = 2 ** -26, LARGEST = 2 ** 53;

function times(rows, x) {
  return rows.map((row) => {
    let total = 0;
    for (let i = 0; i < row.length; i += 2) total += row[i + 1] * x[row[i]];
    if (Math.abs(total) > LARGEST) throw new Error("a number leaves the integers of float64");
    return total;
  });
}

function rectified(x, name, zeroIsSafe) {
  if ((x > 0 && x < SAFE_POSITIVE) || (x < 0 && x > SAFE_NEGATIVE) || (x === 0 && !zeroIsSafe)) {
    throw new Error(`the pre-activation of ${name} is ${x}, where silu is curved`);
  }
  return Math.max(x, 0);
}

function kept(exponent) {
  if (exponent > KEPT && exponent < -SAFE_NEGATIVE) throw new Error(`a state would fade by exp(-${exponent})`);
  return exponent <= KEPT ? 1 : 0;
}

/** One block over all positions: {lanes: what it adds, x, states, y}; lanes: one array a position. */
function runBlock(block, lanes) {
  const state = block.channels.map(() => new Array(block.columns.length).fill(0));
  const seen = lanes.map((now) => times(block.rows, now));
  const found = { added: [], states: [], x: [] };
  for (let t = 0; t < lanes.length; t += 1) {
    const x = block.rows.map((_, f) => {
      let total = block.bias[f];
      block.taps[f].forEach((tap, lag) => { if (lag <= t) total += tap * seen[t - lag][f]; });
      return rectified(total, block.features[f], true);
    });
    const write = times(block.write, x), read = times(block.read, x);
    const steps = times(block.deltaFeatures, x), more = times(block.deltaLanes, lanes[t]), gates = times(block.gate, lanes[t]);
    const added = new Array(lanes[t].length).fill(0);
    block.channels.forEach((name, c) => {
      const delta = rectified(steps[c] + more[c] + block.deltaBias[c], name, false);
      let y = block.skip[c] * x[block.feature[c]];
      state[c] = state[c].map((h, n) => {
        const next = kept(delta * block.rate[c][n % block.rate[c].length]) * h + delta * write[n] * x[block.feature[c]];
        y += next * read[n];
        return next;
      });
      const out = y * rectified(gates[c], name, true);
      for (let i = 0; i < block.out[c].length; i += 2) added[block.out[c][i]] += block.out[c][i + 1] * out;
    });
    found.added.push(added);
    found.states.push(state.map((row) => row.slice()));
    found.x.push(x);
  }
  return found;
}

/** All blocks on token ids: {lanes: by position, stages: lanes after each block, blocks, scores}. */
function run(model, ids) {
  let lanes = ids.map((id) => dense(model.embedding[id], model.lanes.length));
  const stages = [lanes], blocks = [];
  for (const block of model.blocks) {
    const done = runBlock(block, lanes);
    lanes = lanes.map((now, t) => now.map((v, i) => v + done.added[t][i]));
    stages.push(lanes);
    blocks.push(done);
  }
  return { lanes, stages, blocks, scores: lanes.map((now) => times(model.head, now)) };
}

function dense(row, width) {
  const found = new Array(width).fill(0);
  for (let i = 0; i < row.length; i += 2) found[row[i]] = row[i + 1];
  return found;
}

/** The numbers of a variable at every position, from the lanes at the end. */
function raw(variable, lanes) {
  return lanes.map((_, t) => {
    const value = new Array(variable.width).fill(0);
    for (const [lag, entries] of Object.entries(variable.lags)) {
      if (t - lag >= 0) for (const [i, lane, weight] of entries) value[i] += weight * lanes[t - lag][lane];
    }
    return value;
  });
}

/** A value as the page shows it. */
function decoded(variable, value) {
  if (variable.alternatives) {
    if (value.every((v) => v === 0)) return "·";
    const at = variable.alternatives.findIndex(([, word]) => word.every((w, i) => w === value[i]));
    if (at >= 0) return String(variable.alternatives[at][0]);
  }
  return value.length === 1 ? String(value[0]) : `(${value.join(", ")})`;
}

if (typeof module !== "undefined") module.exports = { run, raw, decoded };
