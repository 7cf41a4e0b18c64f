package spec

import (
	"context"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/config"
)

// OpenEntry opens an entry of data (the description of one data set) that is not in a study file,
// which says what is to be measured, but in another file, such as a training file, which says how
// to train a network: node n of the file at path. Paths in the entry are relative to that file. The
// seed is used for shuffling.
func OpenEntry(ctx context.Context, path string, n *config.Node, seed uint64) (dataset.Source, error) {
	var d Data
	if err := config.Decode(n, &d); err != nil {
		return nil, err
	}
	d.node = n
	if err := d.check(); err != nil {
		return nil, err
	}
	return (&Study{Seed: seed, path: path}).OpenData(ctx, d)
}
