// How many parameters the model has, by the blocks of the machine.

/** Of one block of a kind, in one layer; a table that two blocks share counts for both. config: of the record's model */
export function parametersOf(config, stack, kind) {
  const { d_model, max_length, positions, norm_embeddings, share_embeddings, output_bias } = config;
  const [side, d_ff] = stack === "encoder" ? ["source", config.d_ff] : ["target", config.decoder_d_ff];
  const vocabulary = config[`${side}_vocab_size`];
  const norm = 2 * d_model;
  const counts = {
    embedding: vocabulary * d_model,
    positions: (positions === "learned" ? max_length * d_model : 0) + (norm_embeddings ? norm : 0),
    attention: 4 * d_model * (d_model + 1),
    feedForward: 2 * d_model * d_ff + d_ff + d_model,
    norm,
    addNorm: norm,
    output: config.norm === "pre" ? norm : 0,
    linear: (share_embeddings === "none" ? vocabulary * d_model : 0) + (output_bias ? vocabulary : 0),
  };
  return counts[kind] ?? 0;
}

/** Of the whole model, each table once. */
export function allParameters(config) {
  const sum = (stack, ...kinds) => kinds.reduce((total, kind) => total + parametersOf(config, stack, kind), 0);
  const encoder = config.encoder_layers * sum("encoder", "attention", "norm", "feedForward", "norm");
  const decoder = config.decoder_layers * sum("decoder", "attention", "norm", "attention", "norm", "feedForward", "norm");
  const tables = sum("encoder", "embedding") + (config.share_embeddings === "all" ? 0 : sum("decoder", "embedding"));
  return tables + encoder + decoder + sum("encoder", "positions", "output") + sum("decoder", "positions", "output", "linear");
}
