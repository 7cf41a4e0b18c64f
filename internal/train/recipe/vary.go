package recipe

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/config"
)

const maxTrainings = 1000

// Vary is the value of the key vary: sets of keys of the training file, which says how to train a
// network, each with several values. Each combination of the values of a set is a training.
type Vary struct{ sets [][]variedKey }

type variedKey struct {
	path   *config.Node  // names of nested keys, joined by dots
	tag    string        // last of the names: it names the values in runs.csv, in the folder and in the tags of the networks
	values []variedValue // the key takes each of them
}

// A variedValue is a value of a key. Its name is part of the folder of a training.
type variedValue struct {
	name string
	node *config.Node
}

// valueName matches what may be part of the name of a folder on every system.
var valueName = regexp.MustCompile(`^[A-Za-z0-9.+_-]{1,60}$`)

// DecodeNode implements config.Decoder.
func (v *Vary) DecodeNode(n *config.Node) error {
	sets := []*config.Node{n}
	if n.Kind == config.List && len(n.Items) > 0 {
		sets = n.Items
	}
	trainings := 0
	for _, set := range sets {
		keys, combinations, err := decodeKeys(set)
		if err != nil {
			return err
		}
		if trainings += combinations; trainings > maxTrainings {
			return n.Errorf("these values have more than %d combinations", maxTrainings)
		}
		v.sets = append(v.sets, keys)
	}
	return nil
}

// decodeKeys reads a mapping of keys to their values. It also returns the number of combinations.
func decodeKeys(n *config.Node) (keys []variedKey, combinations int, err error) {
	if n.Kind != config.Map || len(n.Pairs) == 0 {
		return nil, 0, n.Errorf("vary is a mapping of keys to their values, such as {seed: [1, 2, 3]}, or a list of such mappings")
	}
	combinations = 1
	for _, p := range n.Pairs {
		k := variedKey{path: p.Key, tag: p.Key.Text[strings.LastIndex(p.Key.Text, ".")+1:]}
		if k.tag == "name" || k.tag == "vary" || k.tag == "" {
			return nil, 0, p.Key.Errorf("%q cannot vary", p.Key.Text)
		}
		if slices.ContainsFunc(keys, func(o variedKey) bool { return o.tag == k.tag }) {
			return nil, 0, p.Key.Errorf("two keys end in %q, which names the folders: vary one of them", k.tag)
		}
		if err := k.decodeValues(p.Value); err != nil {
			return nil, 0, err
		}
		if combinations *= len(k.values); combinations > maxTrainings {
			return nil, 0, n.Errorf("these values have more than %d combinations", maxTrainings)
		}
		keys = append(keys, k)
	}
	return keys, combinations, nil
}

// decodeValues reads a list of numbers and words, or a mapping of names to values of any kind.
func (k *variedKey) decodeValues(n *config.Node) error {
	add := func(at *config.Node, name string, value *config.Node) error {
		switch {
		case !valueName.MatchString(name):
			return at.Errorf("the name of the value %q becomes part of a folder: use letters, digits and . + - _", name)
		case slices.ContainsFunc(k.values, func(o variedValue) bool { return strings.EqualFold(o.name, name) }):
			return at.Errorf("the value %q occurs twice", name)
		}
		k.values = append(k.values, variedValue{name, value})
		return nil
	}
	switch {
	case n.Kind == config.List && len(n.Items) > 0:
		for _, item := range n.Items {
			name, err := item.Scalar()
			if err != nil {
				return item.Errorf("values that are not numbers or words need names: {plain: none, turned: {rotate: [-15, 15]}}")
			}
			if err := add(item, name, item); err != nil {
				return err
			}
		}
	case n.Kind == config.Map && len(n.Pairs) > 0:
		for _, p := range n.Pairs {
			if err := add(p.Key, p.Key.Text, p.Value); err != nil {
				return err
			}
		}
	default:
		return n.Errorf("the values of %s are a list, or a mapping of names to values", k.path.Text)
	}
	return nil
}

// JSONSchema implements config.Schemer.
func (Vary) JSONSchema() map[string]any {
	set := map[string]any{"type": "object", "minProperties": 1, "additionalProperties": map[string]any{"type": []string{"array", "object"}}}
	return map[string]any{"anyOf": []any{set, map[string]any{"type": "array", "minItems": 1, "items": set}}}
}

// combinations returns the settings of a file for each combination of values, one set of keys after
// another; the last key of a set varies fastest.
func (v *Vary) combinations(file *config.Node) (out []variation, err error) {
	for _, keys := range v.sets {
		of, err := combinationsOf(keys, file)
		if err != nil {
			return nil, err
		}
		out = append(out, of...)
	}
	return out, nil
}

func combinationsOf(keys []variedKey, file *config.Node) ([]variation, error) {
	out := []variation{{node: file.Without("vary"), tags: map[string]string{}}}
	for _, k := range keys {
		var next []variation
		for _, c := range out {
			for _, value := range k.values {
				one := variation{node: c.node.Clone(), tags: map[string]string{k.tag: value.name}, parts: append(slices.Clip(c.parts), k.tag+"-"+value.name)}
				maps.Copy(one.tags, c.tags)
				if err := one.node.SetPath(k.path, value.node); err != nil {
					return nil, err
				}
				next = append(next, one)
			}
		}
		out = next
	}
	return out, nil
}

type variation struct {
	node  *config.Node      // settings of the training
	tags  map[string]string // names of the values, by key
	parts []string          // of the folder's name
}

// parseVaried returns the first training of a file with the key vary. Its method Trainings returns
// them all. A training's run is the name of its folder.
func parseVaried(path string, node *config.Node) (*File, error) {
	var v Vary
	if err := v.DecodeNode(node.Get("vary")); err != nil {
		return nil, err
	}
	variations, err := v.combinations(node)
	if err != nil {
		return nil, err
	}
	var all []*File
	for _, c := range variations {
		folder := strings.Join(c.parts, "-")
		if slices.ContainsFunc(all, func(f *File) bool { return strings.EqualFold(f.run, folder) }) {
			return nil, node.Get("vary").Errorf("two trainings have the folder %q: their values must differ", folder)
		}
		if name := c.node.Get("name"); name != nil {
			c.node.Set("name", name.Text+"/"+folder)
		}
		text, err := config.Encode(c.node)
		if err != nil {
			return nil, node.Errorf("%w", err)
		}
		f, err := parseNode(path, c.node, text)
		if err != nil {
			return nil, err
		}
		f.run, f.tags = folder, c.tags
		all = append(all, f)
	}
	for _, f := range all {
		f.trainings = all
	}
	return all[0], nil
}

// Trainings returns the trainings of the file: one for each combination of the values of vary, or
// the file itself.
func (f *File) Trainings() []*File {
	if f.trainings == nil {
		return []*File{f}
	}
	return f.trainings
}

// Folder returns the name of the training's folder within the output folder of RunAll, or ""
// without vary.
func (f *File) Folder() string { return f.run }
