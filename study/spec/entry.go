package spec

import (
	"context"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/config"
)

// OpenEntry opens an entry of data that stands in a file other than a study: at the node n of the
// file at path, to which its own paths are relative. The seed is that of a shuffle.
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
