// From the bytes of a model file to a model that is ready.

import { kernelProducts } from "./kernel.js";
import { openModelFile, readWeights, sizeOf } from "./model_file.js";
import { plainProducts } from "./products.js";
import { Transformer } from "./transformer.js";

/** bytes: of the model file; withKernel: whether WebAssembly is tried. -> {header, model, kernel}: kernel tells whether it
 * multiplies. Raises DamagedModel. */
export function openModel(bytes, withKernel = true) {
  const file = openModelFile(bytes);
  const kernel = withKernel ? kernelProducts(sizeOf(file.header)) : null;
  const products = kernel ?? plainProducts;
  const model = new Transformer(file.header.config, readWeights(file, products.allocate), products);
  return { header: file.header, model, kernel: kernel !== null };
}
