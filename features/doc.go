// Package features extracts the representations of samples once and keeps them on disk: what a layer of a model makes of each
// sample, as it is or moved, pooled over space, time or tokens.
//
// A Store is a folder of content-addressed files, bounded in size: what was used least recently goes first. Files are written
// whole or not at all, and carry a checksum, so two processes may share a store and either may be killed; at worst both do the
// same work, and the result is the same. A file that is damaged is made again.
//
//	store, err := represent.Default()
//	tables, err := store.Layers(ctx, represent.Request{Model: m, Layers: m.Layers(), Pool: represent.Mean, ...})
//	err = tables[0].Row(z, 17) // z: d numbers, those of the 18th sample
//
// A Table stays on disk where it is larger than the memory that the request allows, and its rows are then read as they are asked for.
package features
