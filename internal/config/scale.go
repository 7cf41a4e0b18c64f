package config

import (
	"os"
	"slices"
	"strconv"
	"strings"
)

// ScaleVariable is the variable that chooses one of the key scales of a file, and SmallScale its
// value for the file as it is written.
const (
	ScaleVariable = "SCALE"
	SmallScale    = "small"
)

// ParseScaled parses a file as Parse does, and applies one of its scales. The key scales has, by
// name, the keys that have other values at that scale, with dots between nested keys and numbers
// for items of lists:
//
//	epochs: 12
//	network: {resnet: {depth: 18, width: 8}}
//	scales:
//	  paper: {epochs: 200, network.resnet.width: 64}
//
// The variable SCALE, of vars or of the environment, names the scale; unset, or "small", the file
// holds as it is written. A name that the file does not have is an error. The value none removes a
// key.
func ParseScaled(file string, data []byte, vars map[string]string) (*Node, error) {
	n, err := Parse(file, data, vars)
	if err != nil || n.Kind != Map || n.Get("scales") == nil {
		return n, err
	}
	scales, out := n.Get("scales"), n.Without("scales")
	if scales.Kind != Map {
		return nil, scales.Errorf("scales is a mapping of names to keys with their values, such as {paper: {epochs: 200}}")
	}
	name, given := vars[ScaleVariable]
	if !given {
		name = os.Getenv(ScaleVariable)
	}
	names := []string{SmallScale}
	var chosen *Node
	for _, p := range scales.Pairs {
		switch {
		case p.Key.Text == SmallScale:
			return nil, p.Key.Errorf("the scale %q is the file as it is written: give this scale another name", SmallScale)
		case p.Value.Kind != Map:
			return nil, p.Value.Errorf("a scale is a mapping of keys to their values, such as {epochs: 200, network.resnet.width: 64}")
		case p.Key.Text == name:
			chosen = p.Value
		}
		names = append(names, p.Key.Text)
	}
	if chosen == nil && name != "" && name != SmallScale {
		return nil, scales.Errorf("the variable %s is %q: this file has the scales %s", ScaleVariable, name, strings.Join(names, ", "))
	}
	for i := range scales.Pairs { // those that are not chosen must fit too
		n := out
		if scales.Pairs[i].Value != chosen {
			n = out.Clone()
		}
		for _, p := range scales.Pairs[i].Value.Pairs {
			if err := n.SetPath(p.Key, p.Value); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// SetPath sets a key of a mapping, or of mappings and lists in it, to a copy of a value. The text
// of path has the keys and the numbers of items, from 0, with dots between them; keys may have dots
// themselves. The word none removes the key. All but the last key must exist.
func (n *Node) SetPath(path, value *Node) error {
	at, keys := n, strings.Split(path.Text, ".")
	last := keys[len(keys)-1]
	for i, key := range keys[:len(keys)-1] {
		if rest := strings.Join(keys[i:], "."); at.Get(rest) != nil { // a key with dots, as those of vary
			last = rest
			break
		}
		next := at.Get(key)
		if i, err := strconv.Atoi(key); at.Kind == List && err == nil && i >= 0 && i < len(at.Items) {
			next = at.Items[i]
		}
		switch {
		case next == nil:
			return path.Errorf("%q cannot vary: the file has no key %q", path.Text, key)
		case next.Kind != Map && next.Kind != List:
			return path.Errorf("%q cannot vary: the file has no mapping with the key %q", path.Text, last)
		}
		at = next
	}
	if at.Kind == List {
		i, err := strconv.Atoi(last)
		if err != nil || i < 0 || i >= len(at.Items) {
			return path.Errorf("%q cannot vary: the list has no item %s", path.Text, last)
		}
		at.Items[i] = value.Clone()
		return nil
	}
	i := slices.IndexFunc(at.Pairs, func(p Pair) bool { return p.Key.Text == last })
	switch {
	case at.Kind != Map:
		return path.Errorf("%q cannot vary: the file has no mapping with the key %q", path.Text, last)
	case value.Kind == String && value.Text == "none":
		*at = *at.Without(last)
	case i >= 0:
		at.Pairs[i].Value = value.Clone()
	default:
		key := path.Clone()
		key.Text = last
		at.Pairs = append(at.Pairs, Pair{Key: key, Value: value.Clone()})
	}
	return nil
}

// Without returns a copy of a mapping without a key.
func (n *Node) Without(key string) *Node {
	out := n.Clone()
	out.Pairs = slices.DeleteFunc(out.Pairs, func(p Pair) bool { return p.Key.Text == key })
	return out
}

// Scales is the key scales of a file, which ParseScaled applies and removes.
type Scales struct{}

// DecodeNode implements Decoder.
func (Scales) DecodeNode(n *Node) error { return n.Errorf("scales are keys of a whole file") }

// JSONSchema implements Schemer.
func (Scales) JSONSchema() map[string]any {
	return map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "object"}}
}
