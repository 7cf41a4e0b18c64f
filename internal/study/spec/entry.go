package spec

import (
	"context"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/config"
)

// OpenEntry opens a data set that a file other than a study file describes, such as a training file
// (which says how to train a network). The description is node n of the file at path; its form is
// that of an entry of data in a study file. Paths in it are relative to the file. The seed is used
// for shuffling.
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
