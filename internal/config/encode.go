package config

import (
	yaml "github.com/goccy/go-yaml"
)

// Set puts a value under a key of a mapping, in place of the one that stands there.
func (n *Node) Set(key, value string) {
	v := &Node{Kind: String, Text: value, file: n.file, line: n.line, col: n.col}
	for i := range n.Pairs {
		if n.Pairs[i].Key.Text == key {
			n.Pairs[i].Value = v
			return
		}
	}
	k := &Node{Kind: String, Text: key, file: n.file, line: n.line, col: n.col}
	n.Pairs = append(n.Pairs, Pair{Key: k, Value: v})
}

// Encode writes a node as YAML, variables and aliases resolved.
func Encode(n *Node) ([]byte, error) {
	return yaml.MarshalWithOptions(n.plain(), yaml.Indent(2), yaml.IndentSequence(true))
}

// plain is the node as values that a YAML encoder knows, the order of keys kept.
func (n *Node) plain() any {
	switch n.Kind {
	case Bool:
		return n.Bool
	case Int:
		return n.Int
	case Float:
		return n.Float
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
