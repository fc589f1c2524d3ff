"use strict";
// What a weight is: its row and column by name, what these mean, and which gadget put it there. The same sentence as
// `construct show DIR --weight "TENSOR[i, j]"` (Layout.explain of compiler/layout.py).

function explained(weights, tensor, index) {
  const found = tensor.axes.map((axis, k) => {
    const number = axis.places[index[k]], kind = axis.kind || "row";
    if (number === undefined) return [`${kind} ${index[k]}`, `${kind} ${index[k]} (${axis.padding})`, axis.padding, "", "", ""];
    return weights.coordinates[number];
  });
  const named = (kind, name) => (!kind || name.startsWith(kind) ? name : `${kind} ${name}`);
  const name = found.map((c, k) => named(tensor.axes[k].kind, c[0])).join(" × ");
  const meaning = found.filter((c) => c[2]).map((c) => c[1]).join("; ");
  const author = found.find((c) => c[3]) || found.find((c) => c[5]) || found[0];
  const by = [author[3], author[4] && `for ${author[4]}`, author[5]].filter(Boolean).join(" ");
  return `${tensor.name}[${index.join(", ")}]: ${name}: ${meaning}` + (by ? ` [${by}]` : "");
}

if (typeof module !== "undefined") module.exports = { explained };
