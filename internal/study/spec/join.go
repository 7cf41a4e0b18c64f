package spec

import (
	"context"
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/config"
)

// joinKeys is the value of the key join of a data entry, the description of one data set in a study
// file: entries whose samples are concatenated, in the order of the file.
type joinKeys struct{ Parts []Data }

// DecodeNode implements config.Decoder. Each key is the name of a part, and its value the entry.
func (k *joinKeys) DecodeNode(n *config.Node) error {
	if n.Kind != config.Map || len(n.Pairs) < 2 {
		return n.Errorf("join needs two or more data entries, each with a name: {train: {...}, test: {...}}")
	}
	for _, p := range n.Pairs {
		if p.Value.Kind != config.Map {
			return p.Value.Errorf("a part must be a data entry, such as {cifar10: data_batch_1.bin}")
		}
		if name := p.Value.Get("name"); name != nil {
			return name.Errorf("the name of a part is its key, %s: leave out name", p.Key.Text)
		}
		key := *p.Key
		key.Text = "name"
		entry := *p.Value
		entry.Pairs = append(slices.Clone(entry.Pairs), config.Pair{Key: &key, Value: p.Key})
		var d Data
		if err := config.Decode(&entry, &d); err != nil {
			return err
		}
		d.node = p.Value
		if err := d.checkPart(); err != nil {
			return err
		}
		k.Parts = append(k.Parts, d)
	}
	return nil
}

// checkPart returns an error for keys that a part of joined data cannot have.
func (d Data) checkPart() error {
	for _, key := range []string{"classes", "pairs", "join"} {
		if at := d.node.Get(key); at != nil {
			return at.Errorf("%s cannot be set for a part of joined data", key)
		}
	}
	return d.check()
}

// JSONSchema implements config.Schemer.
func (joinKeys) JSONSchema() map[string]any {
	return map[string]any{"type": "object", "minProperties": 2, "additionalProperties": map[string]any{"type": "object"}}
}

// open opens the parts and joins them. Within adds the name of a part to an error.
func (k *joinKeys) open(ctx context.Context, s *Study, _ Data) (dataset.Source, error) {
	var names []string
	var parts []dataset.Source
	for _, d := range k.Parts {
		part, err := s.OpenData(ctx, d)
		if err != nil {
			for _, src := range parts {
				dataset.Close(src)
			}
			return nil, Within("part "+d.Name, err)
		}
		names, parts = append(names, d.Name), append(parts, part)
	}
	return asSource(dataset.Concat(names, parts))
}
