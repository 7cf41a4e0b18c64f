package config

import (
	"strconv"

	yaml "github.com/goccy/go-yaml"
)

// Set sets the value of a key of a mapping to a text. A Node is a value of a YAML file.
func (n *Node) Set(key, text string) { n.set(key, &Node{Kind: String, Text: text}) }

// SetInt sets the value of a key of a mapping to a number.
func (n *Node) SetInt(key string, v int64) {
	n.set(key, &Node{Kind: Int, Int: v, Float: float64(v), Text: strconv.FormatInt(v, 10)})
}

// SetNode sets the value of a key of a mapping.
func (n *Node) SetNode(key string, v *Node) { n.set(key, v) }

func (n *Node) set(key string, v *Node) {
	v.file, v.line, v.col = n.file, n.line, n.col
	for i := range n.Pairs {
		if n.Pairs[i].Key.Text == key {
			n.Pairs[i].Value = v
			return
		}
	}
	k := &Node{Kind: String, Text: key, file: n.file, line: n.line, col: n.col}
	n.Pairs = append(n.Pairs, Pair{Key: k, Value: v})
}

// Encode writes a node as YAML, with variables (${NAME}) and aliases resolved.
func Encode(n *Node) ([]byte, error) {
	return yaml.MarshalWithOptions(n.plain(), yaml.Indent(2), yaml.IndentSequence(true))
}

// verbatim is a number in the form in which it was written.
type verbatim string

func (v verbatim) MarshalYAML() ([]byte, error) { return []byte(v), nil }

// plain returns the node as values for a YAML encoder, with keys in order.
func (n *Node) plain() any {
	switch n.Kind {
	case Bool:
		return n.Bool
	case Int, Float:
		// Results are named by this text, so 0.50 must not become 0.5.
		return verbatim(n.Text)
	case String:
		return n.Text
	case List:
		out := make([]any, len(n.Items))
		for i, item := range n.Items {
			out[i] = item.plain()
		}
		return out
	case Map:
		out := make(yaml.MapSlice, len(n.Pairs))
		for i, p := range n.Pairs {
			out[i] = yaml.MapItem{Key: p.Key.Text, Value: p.Value.plain()}
		}
		return out
	}
	return nil
}

// Clone returns a deep copy of n.
func (n *Node) Clone() *Node {
	out := *n
	out.Items, out.Pairs = nil, nil
	for _, item := range n.Items {
		out.Items = append(out.Items, item.Clone())
	}
	for _, p := range n.Pairs {
		out.Pairs = append(out.Pairs, Pair{p.Key.Clone(), p.Value.Clone()})
	}
	return &out
}
