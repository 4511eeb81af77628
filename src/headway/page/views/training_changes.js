// What changes in the heads from one moment of the training to the next.

import { nameOfWeights } from "./attention_of_head.js";
import { labelOf, measuredHeads, SHARES } from "./head_labels.js";
import { matrixOf } from "./numbers.js";

/** Every head of a moment: {kind, layer, head, measures, label}; label: {name, share}. */
export function headsOf(record) {
  return Object.keys(record.attention).flatMap((kind) =>
    measuredHeads(record, kind).map((one) => ({ ...one, kind, label: labelOf(kind, one.measures) })),
  );
}

/** The heads that have another label than at the moment before, those with the largest gain or loss of a share first:
 * {kind, layer, head, from, to, measure, was, is}. measure: that of the new label, or of the old one where the new one is
 * of no share, or the entropy; was, is: its value before and now. */
export function relabelled(before, now) {
  const earlier = headsOf(before);
  const changes = headsOf(now).flatMap(({ kind, layer, head, measures, label }, at) => {
    const old = earlier[at];
    if (keyOf(label, measures) === keyOf(old.label, old.measures)) return [];
    const measure = [label.name, old.label.name].find((name) => SHARES[kind].includes(name)) ?? "entropy";
    return [{ kind, layer, head, from: old, to: { kind, measures }, measure, was: old.measures[measure] ?? 0, is: measures[measure] ?? 0 }];
  });
  const size = ({ measure, was, is }) => (measure === "entropy" ? 0 : Math.abs(is - was));
  return changes.toSorted((one, other) => size(other) - size(one));
}

/** What tells one label from another: also the token, where a head is called by one. */
function keyOf({ name }, { favourite_key: token }) {
  return name === "favourite" ? `${name} ${token}` : name;
}

/** The head whose attention moved most: {kind, layer, head, moved}. moved: the share of a row's attention that goes
 * elsewhere now, the mean of its rows. before, now: {record, get}. */
export function mostMoved(before, now) {
  const moved = headsOf(now.record).map(({ kind, layer, head }) => {
    const name = nameOfWeights(now.record, kind, layer);
    const [old, own] = [before, now].map(({ get }) => matrixOf(get(name), head));
    const sum = own.values.reduce((total, value, at) => total + Math.abs(value - old.values[at]), 0);
    return { kind, layer, head, moved: sum / 2 / own.rows };
  });
  return moved.reduce((most, one) => (one.moved > most.moved ? one : most));
}
