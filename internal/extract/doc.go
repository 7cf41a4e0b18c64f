// Package extract writes activations to files from which NumPy, PyTorch and package recorded read
// them: an array for each layer with a row for each sample.
//
//	w, err := extract.NewWriter(dir, extract.Options{Format: extract.Safetensors}, layers, []string{"", "rotate/90"}, samples)
//	err = w.Samples(batch)
//	err = w.Write("", z)
//	err = w.Close()
//
// Rows are written as they come, so that memory does not grow with the number of samples.
package extract
