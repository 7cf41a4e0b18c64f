// Package features extracts representations of samples once and stores them on disk: the
// activations of a model's layers on clean (not transformed) or transformed samples, pooled over
// space, time or tokens into one vector a sample. Samples come from a source of package dataset; a
// position is an index into the samples of that source.
//
// A Store is a folder of files with a bounded size, each named by a hash of the request for its
// content; the least recently used file is removed first. Files are replaced atomically, so
// processes can share a store and can be killed at any time. A Table holds the vectors of one
// layer, one row a sample. Its file has a checksum: a damaged table is computed again.
//
//	store, err := features.Default()
//	request := features.Request{Model: m, Layers: m.Layers(), Pool: pooling.Mean, ...}
//	tables, err := store.Layers(ctx, request)
//	err = tables[0].Row(z, 17) // z: d numbers, the vector of the 18th sample
//
// A Table that is larger than Memory in its Request is not loaded: its rows are read from disk when
// they are needed.
package features
