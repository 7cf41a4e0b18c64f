package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/transform"
)

// Corruption is the value of the key corrupt: corruptions that apply to the samples before any
// transformation.
type Corruption struct {
	Kinds      []string `key:"kinds,required" short:"true" doc:"common corruptions of ImageNet-C, such as fog and jpeg-compression, or all"`
	Severities []int    `key:"severities" min:"1" max:"5" doc:"severities, 1 to 5; default: all five. Each kind at each severity is a separate data set, named NAME/KIND-SEVERITY"`
}

// expandCorruptions replaces every entry of data that has several corruptions by one entry for each
// kind and severity. study is the parsed study file; data is its list of data sets, or a single
// one.
func expandCorruptions(study *config.Node) error {
	data := study.Get("data")
	if data == nil {
		return nil
	}
	entries := data.Items
	if data.Kind == config.Map {
		entries = []*config.Node{data.Clone()}
	}
	var out []*config.Node
	for _, entry := range entries {
		expanded, err := expandEntry(entry)
		if err != nil {
			return err
		}
		out = append(out, expanded...)
	}
	if len(out) > len(entries) {
		data.Kind, data.Items, data.Pairs = config.List, out, nil
	}
	return nil
}

// expandEntry returns an entry of data once for each of its corruptions.
func expandEntry(entry *config.Node) ([]*config.Node, error) {
	corrupt := entry.Get("corrupt")
	if corrupt == nil {
		return []*config.Node{entry}, nil
	}
	var keys Corruption
	if err := config.Decode(corrupt, &keys); err != nil {
		return nil, err
	}
	if err := keys.complete(corrupt); err != nil {
		return nil, err
	}
	if len(keys.Kinds) == 1 && len(keys.Severities) == 1 {
		return []*config.Node{entry}, nil
	}
	var out []*config.Node
	for _, kind := range keys.Kinds { // not Node.Kind, which is list, map or scalar
		for _, severity := range keys.Severities {
			expanded := entry.Clone()
			if name := entry.Get("name"); name != nil {
				expanded.Set("name", fmt.Sprintf("%s/%s-%d", name.Text, kind, severity))
			}
			corruption := corrupt.Clone()
			corruption.Kind, corruption.Items, corruption.Pairs = config.Map, nil, nil
			corruption.Set("kinds", kind)
			corruption.SetInt("severities", int64(severity))
			for i := range expanded.Pairs {
				if expanded.Pairs[i].Key.Text == "corrupt" {
					expanded.Pairs[i].Value = corruption
				}
			}
			out = append(out, expanded)
		}
	}
	return out, nil
}

// complete fills in defaults, and checks the names and severities. Errors have the position of
// node.
func (k *Corruption) complete(node *config.Node) error {
	known := transform.Corruptions()
	if len(k.Kinds) == 0 {
		return node.Errorf("kinds is empty: use %s, or all", strings.Join(known, ", "))
	}
	switch {
	case slices.Equal(k.Kinds, []string{"all"}):
		k.Kinds = known
	case slices.Contains(k.Kinds, "all"):
		return node.Errorf("kinds has all and others: use all alone")
	}
	for _, kind := range k.Kinds {
		if !slices.Contains(known, kind) {
			return node.Errorf("unknown corruption %q: use %s, or all", kind, strings.Join(known, ", "))
		}
	}
	if len(k.Severities) == 0 {
		k.Severities = []int{1, 2, 3, 4, 5}
	}
	for _, s := range k.Severities {
		if s < 1 || s > 5 {
			return node.Errorf("the severity is %d: it must be 1 to 5", s)
		}
	}
	return nil
}
