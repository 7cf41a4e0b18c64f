package spec

import (
	"slices"

	"github.com/noether-ml/noether/internal/config"
)

// Join is the value of the key join: entries whose samples are concatenated, in the order of the
// file.
type Join struct {
	Parts []Data

	node *config.Node
}

// DecodeNode implements config.Decoder. decode reads the parts once the kinds of data are known.
func (k *Join) DecodeNode(n *config.Node) error {
	k.node = n
	return nil
}

func (k *Join) decode(kinds []DataKind) error {
	n := k.node
	if n.Kind != config.Map || len(n.Pairs) < 2 {
		return n.Errorf("join needs two or more data entries, each with a name: {train: {...}, test: {...}}")
	}
	for _, p := range n.Pairs {
		if p.Value.Kind != config.Map {
			return p.Value.Errorf("a part must be a data entry, such as {cifar10: data_batch_1.bin}")
		}
		for _, key := range []string{"classes", "pairs", "join"} {
			if at := p.Value.Get(key); at != nil {
				return at.Errorf("%s cannot be set for a part of joined data", key)
			}
		}
		if name := p.Value.Get("name"); name != nil {
			return name.Errorf("the name of a part is its key, %s: leave out name", p.Key.Text)
		}
		key := *p.Key
		key.Text = "name"
		entry := *p.Value
		entry.Pairs = append(slices.Clone(entry.Pairs), config.Pair{Key: &key, Value: p.Key})
		d := Data{node: p.Value}
		if err := d.decode(&entry, kinds); err != nil {
			return err
		}
		k.Parts = append(k.Parts, d)
	}
	return nil
}

// JSONSchema implements config.Schemer.
func (Join) JSONSchema() map[string]any {
	return map[string]any{"type": "object", "minProperties": 2, "additionalProperties": map[string]any{"type": "object"}}
}
